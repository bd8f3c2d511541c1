// The rule by which two results agree.
#include "ferrite/tensor/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ferrite/ops/svd.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

constexpr float infinity_f = std::numeric_limits<float>::infinity();
constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();

template <class T>
HostTensor tensor(const std::vector<T>& values) {
  return HostTensor::from(std::span<const T>(values), {static_cast<std::int64_t>(values.size())});
}

TEST(Comparison, AllowsErrorsUpToTheToleranceTimesValueAndRms) {
  const HostTensor expected = tensor<float>({1, 1, 1, 1});
  EXPECT_TRUE(compare(tensor<float>({1.0019f, 1, 1, 1}), expected, 1e-3).agrees());
  const Comparison c = compare(tensor<float>({1, 1, 1.004f, 1.0021f}), expected, 1e-3);
  EXPECT_EQ(c.differing, 2);
  EXPECT_EQ(c.index, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(c.value), 1.004f);
  EXPECT_EQ(c.expected, 1);
  EXPECT_NEAR(c.error, 4e-3, 1e-6);
  EXPECT_NEAR(c.allowed, 2e-3, 1e-6);
  EXPECT_NEAR(c.ratio, 2, 1e-3);
}

TEST(Comparison, JudgesASmallElementByTheSizeOfTheTensor) {
  const HostTensor expected = tensor<float>({100, 0});
  EXPECT_TRUE(compare(tensor<float>({100, 0.05f}), expected, 1e-3).agrees());
  EXPECT_FALSE(compare(tensor<float>({100, 0.1f}), expected, 1e-3).agrees());
}

TEST(Comparison, TheSizeOfATensorOfLargeDoublesIsANumber) {
  const HostTensor expected = tensor<double>({1e160, 0});
  EXPECT_TRUE(compare(tensor<double>({1e160, 1e148}), expected, 1e-10).agrees());
  EXPECT_FALSE(compare(tensor<double>({1e160, 1e152}), expected, 1e-10).agrees());
}

TEST(Comparison, JudgesEachPartOfAPackedOutputByItsOwnSize) {
  const HostTensor expected = tensor<float>({1e7f, 0.6f, 0.8f, 2e7f, 0.8f, 0.6f});  // of two matrices
  const HostTensor wrong = tensor<float>({1e7f, 0.6f, 0.8f, 2e7f, 0.8f, 0.5f});
  const std::vector<std::int64_t> parts{1, 2};
  EXPECT_TRUE(compare(wrong, expected, 1e-5).agrees());
  const Comparison c = compare(wrong, expected, 1e-5, {}, parts);
  EXPECT_EQ(c.differing, 1);
  EXPECT_EQ(c.index, 5);
  EXPECT_TRUE(
      compare(tensor<float>({1e7f + 50, 0.6f, 0.8f, 2e7f, 0.8f, 0.6f}), expected, 1e-5, {}, parts).agrees());
}

/// U of a matrix with singular values of 1e7 is wrong by a thousandth.
TEST(Comparison, AWrongFactorBesideLargeSingularValuesIsFound) {
  Reference b;
  const Tensor<Reference> a =
      cast(from_vector(b, std::vector<double>{3e7, 1e7, 1e6, 2e7}, {2, 2}), DType::f32);
  const Tensor<Reference> packed = eval(op::Svd{}, a);
  const auto host = [](const Tensor<Reference>& x) {
    return HostTensor::from(std::span<const float>(x.to_vector<float>()), x.shape());
  };
  std::vector<float> values = packed.to_vector<float>();
  const HostTensor expected = HostTensor::from(std::span<const float>(values), packed.shape());
  values[0] += 1e-3f;
  const HostTensor wrong = HostTensor::from(std::span<const float>(values), packed.shape());
  const op::Svd op;
  detail::ComparedCall call{detail::ErasedOp::of(op), Accumulate::none, {host(a)}, {}, {wrong}, {expected}};
  const Comparison found = detail::compare_outputs(call)[0];
  EXPECT_EQ(found.differing, 1);
  EXPECT_EQ(found.index, 0);
  call.outputs = {expected};
  EXPECT_TRUE(detail::compare_outputs(call)[0].agrees());
}

TEST(Comparison, TakesNanForNanAndInfinityForItself) {
  const HostTensor expected = tensor<float>({nan_f, infinity_f, -infinity_f, 1});
  EXPECT_TRUE(compare(expected, expected, 1e-6).agrees());
  EXPECT_EQ(compare(tensor<float>({1, infinity_f, -infinity_f, 1}), expected, 1e-6).index, 0);
  EXPECT_EQ(compare(tensor<float>({nan_f, -infinity_f, -infinity_f, 1}), expected, 1e-6).index, 1);
  EXPECT_EQ(compare(tensor<float>({nan_f, infinity_f, 5, 1}), expected, 1e-6).index, 2);
  EXPECT_EQ(compare(tensor<float>({nan_f, infinity_f, -infinity_f, nan_f}), expected, 1e-6).index, 3);
}

TEST(Comparison, TakesInfinityForAValueThatNearlyOverflows) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_TRUE(compare(tensor<float>({infinity_f, 1}), tensor<float>({largest, 1}), 1e-6).agrees());
  EXPECT_TRUE(compare(tensor<float>({largest, 1}), tensor<float>({infinity_f, 1}), 1e-6).agrees());
  EXPECT_FALSE(compare(tensor<float>({infinity_f, 1}), tensor<float>({largest / 2, 1}), 1e-6).agrees());
}

TEST(Comparison, WantsIntegersAndBoolsEqual) {
  const std::int64_t large = std::int64_t{1} << 60;
  EXPECT_TRUE(compare(tensor<std::int64_t>({large}), tensor<std::int64_t>({large}), 1).agrees());
  EXPECT_FALSE(compare(tensor<std::int64_t>({large + 1}), tensor<std::int64_t>({large}), 1).agrees());
  EXPECT_FALSE(compare(tensor<std::int32_t>({1, 2}), tensor<std::int32_t>({1, 3}), 1).agrees());
  const std::uint8_t two = 2, one = 1;  // a bool that a broken kernel wrote
  const auto flag = [](const std::uint8_t& b) {
    return HostTensor::copy_of(DType::bool_, {1}, std::as_bytes(std::span(&b, 1)));
  };
  EXPECT_FALSE(compare(flag(two), flag(one), 1).agrees());
}

TEST(Comparison, RoundsTheExpectedValueToTheDtypeUnderTest) {
  const std::vector<Half> value{to_half(0.1f), to_half(1e6f)};
  EXPECT_EQ(compare(tensor(value), tensor<float>({0.1f, 1e6f}), 1e-9).ratio, 0);
}

TEST(Comparison, OfEmptyTensorsFindsNothing) {
  EXPECT_TRUE(compare(tensor<float>({}), tensor<float>({}), 0).agrees());
  EXPECT_THROW(compare(tensor<float>({}), tensor<float>({1}), 0), ShapeError);
}

/// The call of an op with f32 inputs and outputs given by hand.
template <class Op>
std::vector<Comparison> compared(const Op& op, std::vector<HostTensor> inputs,
                                 std::vector<HostTensor> outputs, std::vector<HostTensor> expected) {
  return detail::compare_outputs({detail::ErasedOp::of(op),
                                  Accumulate::none,
                                  std::move(inputs),
                                  {},
                                  std::move(outputs),
                                  std::move(expected)});
}

TEST(Comparison, AcceptsAnotherIndexWithTheSameValue) {
  const op::ArgReduce argmax{op::ArgReduceFn::argmax, 0, true};
  const HostTensor x = tensor<float>({1, 3, 3, 2});
  EXPECT_TRUE(compared(argmax, {x}, {tensor<std::int64_t>({2})}, {tensor<std::int64_t>({1})})[0].agrees());
  EXPECT_FALSE(compared(argmax, {x}, {tensor<std::int64_t>({3})}, {tensor<std::int64_t>({1})})[0].agrees());
  EXPECT_FALSE(compared(argmax, {x}, {tensor<std::int64_t>({4})}, {tensor<std::int64_t>({1})})[0].agrees());
  EXPECT_FALSE(compared(argmax, {x}, {tensor<std::int64_t>({-2})}, {tensor<std::int64_t>({1})})[0].agrees());
}

TEST(Comparison, FindsTheValueBehindAnIndexAlongItsAxis) {
  // [outer 2, axis 2, inner 2], argmax along axis 1.
  const std::vector<float> values{0, 1, 0, 5, 7, 2, 8, 2};
  const HostTensor x = HostTensor::from(std::span<const float>(values), {2, 2, 2});
  const auto places = [](std::vector<std::int64_t> p) {
    return HostTensor::from(std::span<const std::int64_t>(p), {2, 2});
  };
  const op::ArgReduce argmax{op::ArgReduceFn::argmax, 1, false};
  EXPECT_TRUE(compared(argmax, {x}, {places({1, 1, 1, 1})}, {places({0, 1, 1, 0})})[0].agrees());
  const Comparison wrong = compared(argmax, {x}, {places({0, 0, 1, 0})}, {places({0, 1, 1, 0})})[0];
  EXPECT_EQ(wrong.differing, 1);
  EXPECT_EQ(wrong.index, 1);
}

TEST(Comparison, ForgivesCancellationWhereTheOpMagnifiesRounding) {
  // The sum of 1e4, -1e4 and 1 with an error of one ulp of the summands.
  const op::Reduce sum{op::ReduceFn::sum, {0}, true};
  const HostTensor x = tensor<float>({1e4f, -1e4f, 1});
  EXPECT_TRUE(compared(sum, {x}, {tensor<float>({1.001f})}, {tensor<float>({1})})[0].agrees());
  EXPECT_FALSE(compared(sum, {x}, {tensor<float>({1.1f})}, {tensor<float>({1})})[0].agrees());
  EXPECT_FALSE(compared(sum, {tensor<float>({1, -1, 1})}, {tensor<float>({1.001f})}, {tensor<float>({1})})[0]
                   .agrees());
}

TEST(Comparison, ForgivesNothingInAnOpThatOnlyRounds) {
  // floor jumps at 2: a perturbed input would explain any answer.
  const op::Unary floor{op::UnaryFn::floor};
  EXPECT_FALSE(compared(floor, {tensor<float>({2})}, {tensor<float>({1})}, {tensor<float>({2})})[0].agrees());
}

TEST(Comparison, WantsRandomBitsEqualButNormalsClose) {
  op::Random draw{op::RandomFn::uniform, {1}, DType::f32, 1, 2, 0, 1};
  EXPECT_FALSE(compared(draw, {}, {tensor<float>({0.50000006f})}, {tensor<float>({0.5f})})[0].agrees());
  draw.fn = op::RandomFn::normal;
  EXPECT_TRUE(compared(draw, {}, {tensor<float>({0.50000006f})}, {tensor<float>({0.5f})})[0].agrees());
}

}  // namespace
}  // namespace ferrite
