// A backend derived from another: what it adds must not change what the base takes.
#include <gtest/gtest.h>

#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

/// x + 1, with a kernel of its own for f32 alone.
struct Increment {
  static constexpr std::string_view type_name = "increment";
  Metas infer(MetaSpan in) const { return {in[0]}; }
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[0] + 1};
  }
};

struct Extended : Cpu {
  int increments = 0;
  friend void run(Extended& b, const Increment&, Ins in, Outs out) {
    ++b.increments;
    run(static_cast<Cpu&>(b), op::Binary{op::BinaryFn::add, op::ScalarSide::right, 1}, in, out);
  }
  friend bool accepts(const Extended&, const Increment&, MetaSpan in) { return in[0].dtype == DType::f32; }
};

TEST(DerivedBackend, KeepsWhatTheBaseRefuses) {
  Extended b;
  const Meta half{{4, 8}, DType::bf16}, single{{4, 8}, DType::f32};
  EXPECT_FALSE(accepts(b, op::Linear{}, Metas{half, half}));
  EXPECT_TRUE(accepts(b, op::Linear{}, Metas{single, single}));
  EXPECT_FALSE(accepts(b, op::Conv2d{}, Metas{half, half}));

  Cpu cpu;
  Rng rng(1);
  const auto x = randn(cpu, {4, 8}, rng, 0, 1, DType::bf16), w = randn(cpu, {3, 8}, rng, 0, 1, DType::bf16);
  EXPECT_EQ(linear(to(b, x), to(b, w)).to_vector(), linear(x, w).to_vector());
}

TEST(DerivedBackend, DecidesAboutItsOwnOps) {
  Extended b;
  EXPECT_EQ(eval(Increment{}, ones(b, {2})).to_vector(), (std::vector<float>{2, 2}));
  EXPECT_EQ(b.increments, 1);
  EXPECT_EQ(eval(Increment{}, ones(b, {2}, DType::f64)).to_vector(), (std::vector<float>{2, 2}));
  EXPECT_EQ(b.increments, 1);  // refused: composed
}

TEST(DerivedBackend, DecoratorsAskTheBackendBelow) {
  Profiled<Extended> profiled;
  EXPECT_TRUE(accepts(profiled, Increment{}, Metas{{{2}, DType::f32}}));
  EXPECT_FALSE(accepts(profiled, Increment{}, Metas{{{2}, DType::f64}}));
  EXPECT_FALSE(
      accepts(Lazy<Profiled<Extended>>(), op::Linear{}, Metas{{{2, 2}, DType::f16}, {{2, 2}, DType::f16}}));
}

}  // namespace
}  // namespace ferrite
