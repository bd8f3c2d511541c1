// Gradients of ops where several elements stand for one result, or a NaN does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/scatter.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::op_gradient {
namespace {

using Values = std::vector<double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class B>
class OpGradient : public ::testing::Test {
 protected:
  using D = Autodiff<B>;
  D b;
  Tensor<D> leaf(const Values& values, const Shape& shape) {
    return parameter(from_vector(b, values, shape), "x");
  }
  Tensor<D> leaf(const Values& values) { return leaf(values, {static_cast<std::int64_t>(values.size())}); }
  static Values gradient(const Gradients<B>& grads, const Tensor<D>& x) {
    return grads.of(x).template to_vector<double>();
  }
};
using Backends = ::testing::Types<Reference, Cpu>;
TYPED_TEST_SUITE(OpGradient, Backends);

TYPED_TEST(OpGradient, OfAScatterGoesToTheSourceThatStays) {
  const auto x = this->leaf({1, 2, 3, 4, 5, 6}, {3, 2}), source = this->leaf(Values(8, 1.0), {4, 2});
  const auto weights = from_vector(this->b, Values{10, 20, 30, 40, 50, 60}, {3, 2});
  // Column 0 writes to rows 0, 2, 0 and column 1 to rows 1, 1, 1; the source has a row more.
  const auto index = from_vector(this->b, std::vector<std::int64_t>{0, 1, 2, -2, -3, 1}, {3, 2});
  const auto grads = sum(scatter(x, 0, index, source) * weights).backward();
  EXPECT_EQ(this->gradient(grads, x), (Values{0, 20, 30, 0, 0, 60}));
  EXPECT_EQ(this->gradient(grads, source), (Values{0, 0, 50, 0, 10, 40, 0, 0}));
}

TYPED_TEST(OpGradient, OfAScatterAlongTheLastAxis) {
  const auto x = this->leaf(Values(3, 0.0), {1, 3}), source = this->leaf({7, 8, 9}, {1, 3});
  const auto weights = from_vector(this->b, Values{1, 2, 3}, {1, 3});
  const auto index = from_vector(this->b, std::vector<std::int64_t>{2, 2, 0}, {1, 3});
  const auto grads = sum(scatter(x, -1, index, source) * weights).backward();
  EXPECT_EQ(this->gradient(grads, source), (Values{0, 3, 1}));
}

TYPED_TEST(OpGradient, OfMaxAndMinGoesToTheNaNsThatTheyReturn) {
  const auto x = this->leaf({1, nan, 3, nan, 5, 5, 2, 1}, {2, 4});
  EXPECT_EQ(this->gradient(sum(max(x, 1)).backward(), x), (Values{0, 0.5, 0, 0.5, 0.5, 0.5, 0, 0}));
  EXPECT_EQ(this->gradient(sum(min(x, 1)).backward(), x), (Values{0, 0.5, 0, 0.5, 0, 0, 0, 1}));
}

TYPED_TEST(OpGradient, OfMaximumAndMinimumBesideANaNIsWholeForBoth) {
  const auto x = this->leaf({nan, 1, nan, 1, 2, 3}), y = this->leaf({1, nan, nan, 1, 3, 2});
  const auto most = sum(maximum(x, y)).backward(), least = sum(minimum(x, y)).backward();
  EXPECT_EQ(this->gradient(most, x), (Values{1, 1, 1, 0.5, 0, 1}));
  EXPECT_EQ(this->gradient(most, y), (Values{1, 1, 1, 0.5, 1, 0}));
  EXPECT_EQ(this->gradient(least, x), (Values{1, 1, 1, 0.5, 1, 0}));
  EXPECT_EQ(this->gradient(least, y), (Values{1, 1, 1, 0.5, 0, 1}));
}

TYPED_TEST(OpGradient, OfANaNBesideABoundIsWhole) {
  const auto x = this->leaf({nan, 1, 2, 3});
  EXPECT_EQ(this->gradient(sum(maximum(x, 2.0)).backward(), x), (Values{1, 0, 1, 1}));
  EXPECT_EQ(this->gradient(sum(minimum(2.0, x)).backward(), x), (Values{1, 1, 1, 0}));
  EXPECT_EQ(this->gradient(sum(clamp(x, 1.5, 2.5)).backward(), x), (Values{1, 0, 1, 0}));
}

}  // namespace
}  // namespace ferrite::op_gradient
