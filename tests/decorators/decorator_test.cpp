// A decorator of one's own: what Decorator leaves to write, and that a model trains on it.
#include <gtest/gtest.h>

#include "ferrite/nn/linear.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

struct Counts {
  int kernels = 0, added = 0;
};

/// Counts the kernels that run on a backend, and those that add to what is there.
template <class B>
class Counting : public Decorator<Counting<B>, B, Counts> {
  using Base = Decorator<Counting, B, Counts>;

 public:
  using Base::Base;
  const Counts& counts() const { return Base::state(); }
  std::string describe() const { return "counting " + Base::inner().describe(); }

  template <class Op>
  void call(const Op& op, Ins in, Outs out, Accumulate mask) {
    ++Base::state().kernels;
    if (mask != Accumulate::none) ++Base::state().added;
    Base::call(op, in, out, mask);
  }
};
static_assert(check_backend<Counting<Cpu>>() && HandleBackend<Counting<Cpu>>);
static_assert(RunsAccumulating<Counting<Cpu>, op::Matmul> &&
              !RunsAccumulating<Counting<Reference>, op::Matmul>);

template <class B>
std::vector<float> weight_gradient(B& b) {
  Rng rng(1);
  nn::Linear<B> layer(b, {4, 3}, rng);
  const auto x = randn(b, {5, 4}, rng);
  const auto y = layer.forward(x) + layer.forward(x * 2);  // the second gradient is added to the first
  return sum(square(y)).backward().of(layer.weight).to_vector();
}

TEST(Decorator, TrainsAsTheBackendBelow) {
  Autodiff<Counting<Cpu>> counting;
  Autodiff<Cpu> plain;
  EXPECT_EQ(weight_gradient(counting), weight_gradient(plain));
  EXPECT_GT(counting.inner().counts().added, 0);
  EXPECT_GT(counting.inner().counts().kernels, counting.inner().counts().added);
}

TEST(Decorator, CopiesAreOneBackend) {
  Counting<Cpu> a(Counts{.kernels = 10});
  Counting<Cpu> same = a, other;
  const auto x = ones(a, {2}) + ones(same, {2});
  EXPECT_EQ(a.counts().kernels, 13);
  EXPECT_EQ(same.counts().kernels, 13);
  EXPECT_EQ(other.counts().kernels, 0);
  EXPECT_TRUE(a == same && a != other);
  EXPECT_EQ(backend_name(a), "counting cpu");
}

TEST(Decorator, Nests) {
  Profiled<Counting<Cpu>> b;
  EXPECT_EQ(exp(zeros(b, {2})).to_vector(), (std::vector<float>{1, 1}));
  EXPECT_EQ(b.inner().counts().kernels, 2);
  EXPECT_EQ(b.profile().backend, "counting " + Cpu().describe());
}

}  // namespace
}  // namespace ferrite
