// Where a pass writes its gradients, and when it lets go of what was saved.
#include <gtest/gtest.h>

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using CpuAutodiff = Autodiff<Cpu>;
using Values = std::vector<float>;

struct Model {
  CpuAutodiff b;
  Tensor<CpuAutodiff> w = parameter(from_vector(b, Values{1, 2, 3, 4}, {2, 2}), "w");
  Tensor<CpuAutodiff> v = parameter(from_vector(b, Values{5, 6}), "v");
  Tensor<CpuAutodiff> x = from_vector(b, Values{1, -1}, {1, 2});

  Tensor<CpuAutodiff> loss() const { return sum(linear(x, w, v)); }
};

/// The gradients of w and v side by side in one array.
struct Arena {
  Tensor<Cpu> all, w, v;

  explicit Arena(Model& m) : all(full(m.b.inner(), {6}, -1)) {
    w = reshape(slice(all, 0, 0, 4), {2, 2});
    v = slice(all, 0, 4, 6);
  }
};

TEST(GradientPlace, TheFirstPassWritesAndLaterOnesAdd) {
  Model m;
  const Arena arena(m);
  Gradients<Cpu> grads;
  grads.place(m.w, arena.w);
  grads.place(m.v, arena.v);
  backward(m.loss(), grads);
  EXPECT_EQ(arena.all.to_vector<float>(), (Values{1, -1, 1, -1, 1, 1}));
  backward(m.loss(), grads);
  EXPECT_EQ(arena.all.to_vector<float>(), (Values{2, -2, 2, -2, 2, 2}));
  EXPECT_EQ(grads.of(m.w).to_vector<float>(), (Values{2, -2, 2, -2}));
}

TEST(GradientPlace, TakesAlsoContributionsThatNoKernelCanWriteThere) {
  Model m;
  const Arena arena(m);
  Gradients<Cpu> grads;
  grads.place(m.v, arena.v);
  backward(sum(m.v * 3) + sum(m.v), grads);
  EXPECT_EQ(arena.v.to_vector<float>(), (Values{4, 4}));
  EXPECT_EQ(grads.of(m.v).to_vector<float>(), (Values{4, 4}));
}

/// Two outputs of one kernel are contributions to one gradient; only one of them can be written to its place.
TEST(GradientPlace, IsWrittenOnceForATensorThatIsTwoInputs) {
  CpuAutodiff b;
  Rng rng(1);
  const auto x = parameter(randn(b, {1, 2, 3, 4}, rng), "x");
  const auto loss = [&] { return sum(square(attention(x, x, x * 2))); };
  const Values want = backward(loss()).of(x).to_vector<float>();
  const Tensor<Cpu> place = full(b.inner(), {1, 2, 3, 4}, -1);
  Gradients<Cpu> grads;
  grads.place(x, place);
  EXPECT_EQ(grads.size(), 0u);
  EXPECT_FALSE(grads.find(x).defined());
  for (const float passes : {1.0f, 2.0f}) {
    backward(loss(), grads);
    const Values got = place.to_vector<float>();
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], passes * want[i], 1e-5f) << i;
  }
  EXPECT_EQ(grads.size(), 1u);
}

TEST(GradientPlace, LeavesAloneWhatSetHasPutInItsStead) {
  Model m;
  const Arena arena(m);
  Gradients<Cpu> grads;
  grads.place(m.v, arena.v);
  backward(m.loss(), grads);
  const Tensor<Cpu> own = from_vector(m.b.inner(), Values{10, 20});
  EXPECT_THROW(grads.set(m.v, zeros(m.b.inner(), {3})), ShapeError);
  grads.set(m.v, own);
  backward(m.loss(), grads);
  EXPECT_EQ(own.to_vector<float>(), (Values{10, 20}));
  EXPECT_EQ(grads.of(m.v).to_vector<float>(), (Values{11, 21}));
  EXPECT_EQ(arena.v.to_vector<float>(), (Values{1, 1}));
}

TEST(GradientPlace, MustFitTheLeaf) {
  Model m;
  Gradients<Cpu> grads;
  EXPECT_THROW(grads.place(m.w, full(m.b.inner(), {4}, 0)), ShapeError);
  EXPECT_THROW(grads.place(m.w, full(m.b.inner(), {2, 2}, 0, DType::bf16)), ShapeError);
  EXPECT_THROW(grads.place(m.x, full(m.b.inner(), {1, 2}, 0)), GradientError);
}

TEST(Release, DropsWhatWasSavedWhileThePassRuns) {
  Model m;
  const std::size_t before = m.b.memory_stats().in_use;
  constexpr std::int64_t n = 1 << 16;
  const auto start = parameter(full(m.b, {n}, 0.5f), "start");
  Tensor<CpuAutodiff> y = start;
  for (int i = 0; i < 8; ++i) y = tanh(y);  // each keeps its result
  const Tensor<CpuAutodiff> loss = sum(y);
  y = {};
  const std::size_t kept = m.b.memory_stats().in_use - before;
  ASSERT_GE(kept, 9 * n * sizeof(float));
  auto config = BackwardConfig<Cpu>{}.with_release();
  const auto grads = backward(loss, config);
  EXPECT_LE(m.b.memory_stats().in_use - before, kept - 7 * n * sizeof(float));
  try {
    backward(loss);
    FAIL() << "nothing is left to differentiate";
  } catch (const GradientError& e) {
    EXPECT_NE(std::string(e.what()).find("released"), std::string::npos) << e.what();
  }
}

TEST(Release, IsNotTheDefault) {
  Model m;
  const Tensor<CpuAutodiff> loss = m.loss();
  EXPECT_EQ(backward(loss).of(m.v).to_vector<float>(), backward(loss).of(m.v).to_vector<float>());
}

}  // namespace
}  // namespace ferrite
