// Tensors and host memory: creation, conversion, copies between backends, printing.
#include "ferrite/ops/linspace.hpp"
#include "ferrite/ops/statistic.hpp"
#include "ferrite/ops/triangle.hpp"
#include "ferrite/stacks.hpp"

#include "ferrite/tensor/assign.hpp"
#include "messages.hpp"

#include <gtest/gtest.h>

namespace ferrite {
namespace {

TEST(Tensor, IsAValueThatSharesItsBuffer) {
  Cpu b;
  const auto x = arange(b, 6, DType::f32);
  const Tensor<Cpu> copy = x;
  EXPECT_EQ(copy.primitive().buffer(), x.primitive().buffer());
  EXPECT_EQ(reshape(x, {2, 3}).primitive().buffer(), x.primitive().buffer());
  EXPECT_NE(clone(x).primitive().buffer(), x.primitive().buffer());
}

TEST(Tensor, ComesFromAndGoesToHostMemory) {
  Cpu b;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto x = from_vector(b, values, {2, 3});
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(transpose(x, 0, 1).to_vector(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(from_span(b, std::span<const float>(values).subspan(2, 2), {2}).to_vector<int>(),
            (std::vector<int>{3, 4}));
  EXPECT_EQ(from_vector(b, std::vector<bool>{true, false}).to_vector<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(full(b, {}, 2.5, DType::bf16).item(), 2.5f);
  EXPECT_EQ(empty(b, {2, 0, 3}).numel(), 0);
  EXPECT_THROW(from_vector(b, values, {4}), ShapeError);
}

TEST(Tensor, CreationFunctionsGiveTheirNumbers) {
  Cpu b;
  EXPECT_EQ(arange(b, 1, 2, 0.25, DType::f32).to_vector(), (std::vector<float>{1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(arange(b, 5, 0, -2, DType::i32).to_vector<int>(), (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(linspace(b, 0, 1, 5).to_vector(), (std::vector<float>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linspace(b, 0, 10, 4, DType::i32).to_vector<int>(), (std::vector<int>{0, 3, 6, 10}));
  EXPECT_EQ(linspace(b, 0.5, 10.5, 5, DType::i64).to_vector<int>(), (std::vector<int>{0, 3, 5, 8, 10}));
  EXPECT_EQ(linspace(b, -1, 0, 3, DType::i32).to_vector<int>(), (std::vector<int>{-1, -1, 0}));
  EXPECT_EQ(linspace(b, 3, 4, 1).to_vector(), std::vector<float>{3});
  EXPECT_EQ(linspace(b, 3, 4, 0).numel(), 0);
  for (std::int64_t n = 2; n < 100; ++n)
    EXPECT_EQ(linspace(b, 0, 1, n, DType::f64)[-1].item<double>(), 1.0) << n;
  EXPECT_EQ(eye(b, 2).to_vector(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(one_hot(arange(b, 2), 3).to_vector(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
}

TEST(Tensor, ANumberBeyondAllDTypesIsTheLargest) {
  Cpu b;
  const auto x = arange(b, 3);
  EXPECT_EQ((x < SIZE_MAX).to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(minimum(x, SIZE_MAX).to_vector<int>(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(clamp(x, 1, SIZE_MAX).to_vector<int>(), (std::vector<int>{1, 1, 2}));
}

TEST(Tensor, RandomNumbersAreTheSameOnEveryBackend) {
  Cpu cpu;
  Reference reference;
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    Rng a(7), b(7);
    EXPECT_EQ(to_bytes(rand(cpu, {1000}, a, -1, 3, dtype)),
              to_bytes(rand(reference, {1000}, b, -1, 3, dtype)));
  }
  Rng a(7), b(7);
  EXPECT_EQ(to_bytes(randint(cpu, {1000}, a, -5, 100)), to_bytes(randint(reference, {1000}, b, -5, 100)));
  EXPECT_EQ(to_bytes(bernoulli(cpu, {1000}, a, 0.3)), to_bytes(bernoulli(reference, {1000}, b, 0.3)));
  const auto x = randn(cpu, {1000}, a).to_vector(), y = randn(reference, {1000}, b).to_vector();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 4e-6 * std::max(1.0f, std::abs(y[i])));
  EXPECT_EQ(a.position(), b.position());
}

TEST(Tensor, MovesBetweenBackendsWithoutHistory) {
  Cpu cpu;
  Autodiff<Reference> ad;
  const auto x = parameter(arange(ad, 4, DType::f32), "x");
  const Tensor<Cpu> moved = to(cpu, transpose(reshape(x * 2, {2, 2}), 0, 1));
  EXPECT_EQ(moved.to_vector(), (std::vector<float>{0, 4, 2, 6}));
}

TEST(Tensor, PrintsAsNumPyDoes) {
  Cpu b;
  EXPECT_EQ(to_string(reshape(arange(b, 6), {2, 3})), "[[0, 1, 2],\n [3, 4, 5]]");
  EXPECT_EQ(to_string(from_vector(b, std::vector<float>{1, -2.5, 10})), "[ 1.0, -2.5, 10.0]");
  EXPECT_EQ(to_string(from_vector(b, std::vector<float>{1, 2})), "[1., 2.]");
  EXPECT_EQ(to_string(full(b, {}, 3, DType::i32)), "3");
  EXPECT_EQ(to_string(arange(b, 2) == 1), "[false,  true]");
  EXPECT_EQ(to_string(from_vector(b, std::vector<float>{NAN, INFINITY})), "[nan, inf]");
  EXPECT_EQ(to_string(zeros(b, {0})), "[]");
  EXPECT_EQ(to_string(arange(b, 2000)), "[   0,    1,    2, ..., 1997, 1998, 1999]");
  EXPECT_EQ(to_string(zeros(b, {2, 1, 2}, DType::i32)), "[[[0, 0]],\n\n [[0, 0]]]");
}

template <class B>
void expect_assigned_as_it_was_before(B b) {
  const auto reversed = arange(b, 5, DType::f32);
  assign(reversed, flip(reversed));
  EXPECT_EQ(reversed.to_vector(), (std::vector<float>{4, 3, 2, 1, 0}));
  const auto turned = reshape(arange(b, 4, DType::f32), {2, 2});
  assign(turned, transpose(turned, 0, 1));
  EXPECT_EQ(turned.to_vector(), (std::vector<float>{0, 2, 1, 3}));
  const std::int64_t n = 300'000;  // more than one thread has
  const auto shifted = arange(b, n, DType::i64);
  assign(slice(shifted, 0, 1, n), slice(shifted, 0, 0, n - 1));
  std::vector<std::int64_t> expected(static_cast<std::size_t>(n));
  for (std::size_t i = 1; i < expected.size(); ++i) expected[i] = static_cast<std::int64_t>(i) - 1;
  EXPECT_EQ(shifted.template to_vector<std::int64_t>(), expected);
  const auto halves = arange(b, 4, DType::f32);  // apart in one buffer
  assign(slice(halves, 0, 2, 4), slice(halves, 0, 0, 2));
  EXPECT_EQ(halves.to_vector(), (std::vector<float>{0, 1, 0, 1}));
}

TEST(Tensor, IsAssignedViewsOfItselfAsTheyWere) {
  expect_assigned_as_it_was_before(Cpu());
  expect_assigned_as_it_was_before(Reference());
  expect_assigned_as_it_was_before(Lazy<Cpu>());
}

TEST(Tensor, WhoseElementsShareMemoryIsNotWrittenTo) {
  Cpu b;
  const auto one = zeros(b, {1});
  ::ferrite::testing::expect_contains(
      ::ferrite::testing::message_of<ShapeError>([&] { assign(expand(one, {3}), arange(b, 3, DType::f32)); }),
      "[assign] target [3]: its elements share memory");
  EXPECT_EQ(one.item(), 0.0f);
  Autodiff<Cpu> a;
  for (const auto& x : {expand(zeros(a, {1}), {4}), windows(zeros(a, {3}), 0, 2)})
    ::ferrite::testing::expect_contains(
        ::ferrite::testing::message_of<ShapeError>([&] { parameter(x, "w"); }),
        "its elements share memory, as those of an expanded tensor do; give it a clone()");
  EXPECT_EQ(parameter(clone(expand(zeros(a, {1}), {4})), "w").numel(), 4);
}

TEST(Tensor, IsFlattenedOnlyForwards) {
  Cpu b;
  const auto x = zeros(b, {2, 3, 4});
  EXPECT_EQ(flatten(x, 1, 1).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(flatten(x, 1, 2).shape(), (Shape{2, 12}));
  EXPECT_THROW(flatten(x, 2, 0), ShapeError);
}

TEST(Tensor, OfIntegersTakesBoundsBeyondItsRangeAsItsEnds) {
  Cpu b;
  const std::vector<std::uint8_t> values{0, 1, 200, 255};
  const auto x = from_vector(b, values);
  EXPECT_EQ(clamp(x, -5, 300).to_vector<std::uint8_t>(), values);
  EXPECT_EQ(maximum(x, -5).to_vector<std::uint8_t>(), values);
  EXPECT_EQ(minimum(300, x).to_vector<std::uint8_t>(), values);
  EXPECT_EQ(maximum(x, 300).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>(4, 255)));
  EXPECT_EQ(clamp(x, 1, 200).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 1, 200, 200}));
  const auto y = from_vector(b, std::vector<int>{-3, 7});
  EXPECT_EQ(minimum(y, std::int64_t{1} << 40).to_vector<int>(), (std::vector<int>{-3, 7}));
  // The op itself does it, on every backend.
  const op::Binary bounded{op::BinaryFn::minimum, op::ScalarSide::right, 300};
  EXPECT_EQ(eval(bounded, x).to_vector<std::uint8_t>(), values);
  Reference reference;
  EXPECT_EQ(eval(bounded, from_vector(reference, values)).to_vector<std::uint8_t>(), values);
}

TEST(Tensor, ChosenFromTwoScalarsHasTheirKind) {
  Cpu b;
  const auto c = from_vector(b, std::vector<bool>{true, false});
  const auto whole = where(c, 3, -4), real = where(c, 1, 2.5), truth = where(c, false, true);
  EXPECT_EQ(whole.dtype(), DType::i64);
  EXPECT_EQ(whole.to_vector<std::int64_t>(), (std::vector<std::int64_t>{3, -4}));
  EXPECT_EQ(real.dtype(), DType::f32);
  EXPECT_EQ(real.to_vector<float>(), (std::vector<float>{1, 2.5}));
  EXPECT_EQ(truth.to_vector<bool>(), (std::vector<bool>{false, true}));
}

template <class Count>
concept CountsTo = requires(Cpu& b, Count count) {
  arange(b, count);
};
static_assert(CountsTo<int> && CountsTo<std::int64_t> && CountsTo<std::size_t>);
static_assert(!CountsTo<double> && !CountsTo<float>, "a fraction would be cut off");

TEST(Tensor, OneHotOfNoIdsTakesNoMemory) {
  Cpu b;
  const std::int64_t classes = std::int64_t{1} << 40;
  const auto y = one_hot(zeros(b, {3, 0}, DType::i64), classes, DType::bool_);
  EXPECT_EQ(y.shape(), (Shape{3, 0, classes}));
  EXPECT_EQ(y.dtype(), DType::bool_);
}

TEST(Tensor, AVarianceIsInRangeThoughASquareIsNot) {
  std::vector<float> values(100, 0.0f);
  values[3] = 3e19f;
  const auto variance = [&](auto b) { return var(from_vector(b, values)).template item<double>(); };
  EXPECT_NEAR(variance(Reference()), 9e36, 1e31);
  EXPECT_NEAR(variance(Cpu()), 9e36, 1e31);
}

}  // namespace
}  // namespace ferrite
