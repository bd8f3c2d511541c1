// checkpoint: the same gradients with less memory.
#include "ferrite/autodiff/checkpoint.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/assign.hpp"

#include <gtest/gtest.h>

namespace ferrite {
namespace {

using D = Autodiff<Reference>;
using List = std::vector<Tensor<D>>;

TEST(Checkpoint, GivesTheSameGradientsAsThePlainFunction) {
  D b;
  Rng rng(5);
  const auto x = parameter(randn(b, {4, 6}, rng, 0, 1, DType::f64), "x");
  const auto w = parameter(randn(b, {6, 6}, rng, 0, 1, DType::f64), "w");
  const auto block = [&](const List& in) { return tanh(matmul(in[0], w)) * in[0]; };
  const auto plain = sum(block({block({x})})).backward();
  const auto kept = sum(checkpoint<Reference>(block, {checkpoint<Reference>(block, {x})})).backward();
  EXPECT_EQ(plain.of(x).to_vector<double>(), kept.of(x).to_vector<double>());
  EXPECT_EQ(plain.of(w).to_vector<double>(), kept.of(w).to_vector<double>());
}

TEST(Checkpoint, ReplaysRandomDraws) {
  D b;
  const auto x = parameter(ones(b, {200}), "x");
  Rng rng(9);
  const auto y = checkpoint<Reference>([&](const List& in) { return dropout(in[0], 0.5, rng); }, {x});
  const auto position = rng.position();
  const auto gradient = sum(y).backward().of(x).to_vector<float>();
  EXPECT_EQ(gradient, y.to_vector<float>()) << "backward must see the mask of the forward";
  EXPECT_EQ(rng.position(), position) << "recomputation must not advance the generator";
}

TEST(Checkpoint, HoldsLessMemoryThanThePlainGraph) {
  D b;
  Rng rng(1);
  const auto x = parameter(randn(b, {64, 64}, rng), "x");
  const auto block = [](const List& in) {
    auto y = in[0];
    for (int i = 0; i < 8; ++i) y = tanh(y * 1.1);
    return y;
  };
  const auto held_by = [&](auto&& forward) {
    const std::size_t before = b.memory_stats().in_use;
    const Tensor<D> y = forward();
    return b.memory_stats().in_use - before;
  };
  const auto plain = held_by([&] { return block({block({x})}); });
  const auto kept =
      held_by([&] { return checkpoint<Reference>(block, {checkpoint<Reference>(block, {x})}); });
  EXPECT_LT(4 * kept, plain);
}

TEST(Checkpoint, WritesToWhatItReadsAreErrors) {
  D b;
  const auto x = parameter(ones(b, {3}), "x"), w = parameter(ones(b, {3}), "w");
  for (const Tensor<D>& written : {x, w}) {
    const auto y = sum(checkpoint<Reference>([&](const List& in) { return in[0] * w * w; }, {x}));
    assign(written, full(b, {3}, 10.0));
    EXPECT_THROW(y.backward(), GradientError);
  }
}

TEST(Checkpoint, RunsAgainWhereNothingIsRecorded) {
  D b;
  const auto w = parameter(full(b, {2}, 0.5, DType::f64), "w");
  const auto loss = sum(w * w) + sum(checkpoint<Reference>([](const List& in) { return exp(in[0]); }, {w}));
  const auto expected = loss.backward().of(w).to_vector<double>();
  EXPECT_NEAR(expected[0], 1 + std::exp(0.5), 1e-12);
  const NoGrad nothing;
  EXPECT_EQ(loss.backward().of(w).to_vector<double>(), expected);
}

TEST(Checkpoint, MustDoTheSameEveryTime) {
  D b;
  const auto w = parameter(ones(b, {2}), "w");
  int runs = 0;
  const auto y = sum(
      checkpoint<Reference>([&](const List& in) { return runs++ == 0 ? in[0] * 2 : in[0].detach(); }, {w}));
  EXPECT_THROW(y.backward(), GradientError);
}

TEST(Checkpoint, CanBeReleased) {
  D b;
  const auto w = parameter(ones(b, {2}), "w");
  const auto y = sum(checkpoint<Reference>([](const List& in) { return exp(in[0]); }, {w}));
  EXPECT_NO_THROW(backward(y, BackwardConfig<Reference>{}.with_release()));
  EXPECT_THROW(y.backward(), GradientError);
}

TEST(Checkpoint, CallsTheHookForCapturedParameters) {
  D b;
  const auto x = parameter(ones(b, {2}), "x"), w = parameter(ones(b, {2}), "w");
  const auto y = checkpoint<Reference>([&](const List& in) { return in[0] * w; }, {x});
  std::vector<std::string> ready;
  backward(sum(y), BackwardConfig<Reference>{}.with_on_ready(
                       [&](const std::string& name, const auto&) { ready.push_back(name); }));
  std::sort(ready.begin(), ready.end());
  EXPECT_EQ(ready, (std::vector<std::string>{"w", "x"}));
}

}  // namespace
}  // namespace ferrite
