// Reference's unary, binary and where, against values computed elsewhere.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "backend_cpu/math/scalar_functions.hpp"
#include "backend_cpu/reference_arrays.hpp"

namespace ferrite::testing {
namespace {

using op::BinaryFn;
using op::ScalarSide;
using op::UnaryFn;

constexpr double exact = 0, few_ulp = 4e-16;

Array unary(UnaryFn fn, const Array& x, double alpha = 1) { return run(op::Unary{fn, alpha}, {x}); }
Array binary(BinaryFn fn, const Array& a, const Array& b) { return run(op::Binary{fn}, {a, b}); }
Array f64(const std::vector<double>& values) {
  return make(DType::f64, {static_cast<std::int64_t>(values.size())}, values);
}
Array i64(const std::vector<std::int64_t>& values) {
  return make(DType::i64, {static_cast<std::int64_t>(values.size())}, values);
}

struct UnaryCase {
  UnaryFn fn;
  std::vector<double> x, y;
  double alpha = 1;
};

const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {UnaryFn::neg, {0.75, -1.5}, {-0.75, 1.5}},
      {UnaryFn::abs, {0.75, -1.5, -inf}, {0.75, 1.5, inf}},
      {UnaryFn::sign, {0.75, -1.5, 0.0, -0.0}, {1, -1, 0, 0}},
      {UnaryFn::square, {0.75, -1.5}, {0.5625, 2.25}},
      {UnaryFn::relu, {0.75, -1.5, 0, inf, -inf}, {0.75, 0, 0, inf, 0}},
      {UnaryFn::floor, {0.75, -1.5, 2}, {0, -2, 2}},
      {UnaryFn::ceil, {0.75, -1.5, 2}, {1, -1, 2}},
      {UnaryFn::round, {0.5, 1.5, 2.5, -0.5, -2.5, 0.75}, {0, 2, 2, 0, -2, 1}},
      {UnaryFn::sqrt, {0.75, 4, -1}, {0.8660254037844386, 2, not_a_number}},
      {UnaryFn::rsqrt, {0.75, 4, 0}, {1.1547005383792517, 0.5, inf}},
      {UnaryFn::reciprocal, {0.75, -4, 0, -0.0}, {1.3333333333333333, -0.25, inf, -inf}},
      {UnaryFn::exp, {0.75, -1.5, 1000, -1000}, {2.117000016612675, 0.22313016014842982, inf, 0}},
      {UnaryFn::expm1, {0.75, -1.5, 1e-20}, {1.1170000166126748, -0.7768698398515702, 1e-20}},
      {UnaryFn::log, {0.75, 1, 0, -1}, {-0.2876820724517809, 0, -inf, not_a_number}},
      {UnaryFn::log1p, {0.75, -0.5, 1e-20, -1}, {0.5596157879354227, -0.6931471805599453, 1e-20, -inf}},
      {UnaryFn::sin, {0.75, -1.5, inf}, {0.6816387600233341, -0.9974949866040544, not_a_number}},
      {UnaryFn::cos, {0.75, -1.5}, {0.7316888688738209, 0.0707372016677029}},
      {UnaryFn::tan, {0.75, -1.5}, {0.9315964599440725, -14.101419947171719}},
      {UnaryFn::tanh, {0.75, -1.5, 1000}, {0.6351489523872873, -0.9051482536448664, 1}},
      {UnaryFn::sigmoid, {0.75, -1.5, 1000, -1000}, {0.679178699175393, 0.18242552380635635, 1, 0}},
      {UnaryFn::erf, {0.75, -1.5}, {0.7111556336535151, -0.9661051464753108}},
      {UnaryFn::gelu_tanh, {0.75, -1.5, 100}, {0.5799605551656203, -0.10042842301976707, 100}},
      {UnaryFn::gelu_erf, {0.75, -1.5, 100}, {0.5800294857173488, -0.10021080190328713, 100}},
      {UnaryFn::silu, {0.75, -1.5, 1000, -1000}, {0.5093840243815447, -0.2736382857095345, 1000, 0}},
      {UnaryFn::softplus, {0.75, -1.5, 1000, -1000}, {0.8507066389913762, 0.02429367578687103, 1000, 0}, 2},
      {UnaryFn::elu, {0.75, -1.5, 1000, -1000}, {0.75, -0.3884349199257851, 1000, -0.5}, 0.5},
      {UnaryFn::leaky_relu, {0.75, -1.5}, {0.75, -0.15}, 0.1},
      {UnaryFn::logical_not, {0.75, 0, -0.0, not_a_number}, {0, 1, 1, 0}},
      {UnaryFn::isnan, {0.75, inf, not_a_number}, {0, 0, 1}},
      {UnaryFn::isfinite, {0.75, inf, -inf, not_a_number}, {1, 0, 0, 0}},
  };
  return cases;
}

TEST(ReferenceUnary, EveryFunctionGivesItsTabulatedValues) {
  std::set<UnaryFn> seen;
  for (const UnaryCase& c : unary_cases()) {
    SCOPED_TRACE(op::to_string(c.fn));
    expect_values(unary(c.fn, f64(c.x), c.alpha), c.y, few_ulp);
    seen.insert(c.fn);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(op::unary_fn_count));
}

TEST(ReferenceUnary, NaNStaysNaN) {
  for (int i = 0; i < static_cast<int>(UnaryFn::logical_not); ++i) {
    const auto fn = static_cast<UnaryFn>(i);
    SCOPED_TRACE(op::to_string(fn));
    expect_values(unary(fn, f64({not_a_number})), {not_a_number});
  }
}

TEST(ReferenceUnary, SmallArgumentsKeepTheirRelativePrecision) {
  expect_values(unary(UnaryFn::expm1, f64({1e-20})), {1e-20}, exact);
  expect_values(unary(UnaryFn::log1p, f64({1e-20})), {1e-20}, exact);
  // exp(-100) and -30 Phi(-30): lost by log(1 + exp(x)) and by 1 + erf(x).
  EXPECT_NEAR(values_of(unary(UnaryFn::softplus, f64({-100})))[0] / 3.720075976020836e-44, 1, 1e-15);
  EXPECT_NEAR(values_of(unary(UnaryFn::gelu_erf, f64({-30})))[0] / -1.4720141781444560e-196, 1, 1e-12);
}

TEST(ReferenceUnary, ResultsAreRoundedOnceToTheirDType) {
  expect_array(unary(UnaryFn::sqrt, make(DType::f32, {1}, {2})), {{1}, DType::f32}, {1.41421354f});
  expect_array(unary(UnaryFn::exp, make(DType::f16, {2}, {1, 12})), {{2}, DType::f16}, {2.71875, inf});
  expect_array(unary(UnaryFn::sqrt, make(DType::bf16, {1}, {2})), {{1}, DType::bf16}, {1.4140625});
}

TEST(ReferenceUnary, IntegersStayIntegersAndWrapAround) {
  const Array x = make(DType::i32, {3}, {7, -3, 0});
  const Meta meta{{3}, DType::i32};
  expect_array(unary(UnaryFn::neg, x), meta, {-7, 3, 0});
  expect_array(unary(UnaryFn::abs, x), meta, {7, 3, 0});
  expect_array(unary(UnaryFn::sign, x), meta, {1, -1, 0});
  expect_array(unary(UnaryFn::square, x), meta, {49, 9, 0});
  expect_array(unary(UnaryFn::relu, x), meta, {7, 0, 0});
  for (const UnaryFn fn : {UnaryFn::floor, UnaryFn::ceil, UnaryFn::round}) {
    expect_array(unary(fn, x), meta, {7, -3, 0});
  }
  const double i32_min = -2147483648.0;
  expect_values(unary(UnaryFn::neg, make(DType::i32, {1}, {i32_min})), {i32_min});
  expect_values(unary(UnaryFn::square, make(DType::i32, {2}, {65536, 65537})), {0, 131073});
  expect_values(unary(UnaryFn::neg, make(DType::u8, {2}, {1, 0})), {255, 0});
  const Array i64_min = i64({INT64_MIN});
  EXPECT_EQ(values_of<std::int64_t>(unary(UnaryFn::neg, i64_min))[0], INT64_MIN);
  EXPECT_EQ(values_of<std::int64_t>(unary(UnaryFn::abs, i64_min))[0], INT64_MIN);
  EXPECT_EQ(values_of<std::int64_t>(unary(UnaryFn::square, i64({3037000500})))[0], -9223372036709301616);
}

TEST(ReferenceUnary, RealFunctionsOfIntegersGiveFloats) {
  expect_array(unary(UnaryFn::sqrt, make(DType::i32, {2}, {2, 9})), {{2}, DType::f64},
               {1.4142135623730951, 3});
  expect_array(unary(UnaryFn::reciprocal, make(DType::u8, {1}, {3})), {{1}, DType::f32}, {1.0f / 3});
  expect_array(unary(UnaryFn::exp, make(DType::bool_, {2}, {0, 1})), {{2}, DType::f32}, {1, 2.71828175f});
}

TEST(ReferenceUnary, TestsOfIntegersGiveBool) {
  const Array x = i64({0, INT64_MAX});
  expect_array(unary(UnaryFn::logical_not, x), {{2}, DType::bool_}, {1, 0});
  expect_array(unary(UnaryFn::isnan, x), {{2}, DType::bool_}, {0, 0});
  expect_array(unary(UnaryFn::isfinite, x), {{2}, DType::bool_}, {1, 1});
}

TEST(ReferenceUnary, EveryLayoutIsReadAndWritten) {
  const Array x = make(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto negated = [](const Array& a) { return unary(UnaryFn::neg, a); };
  expect_array(negated(x.with_layout(x.layout().permute({1, 0}))), {{3, 2}, DType::f32},
               {-1, -4, -2, -5, -3, -6});
  expect_values(negated(x.with_layout(x.layout().flip(1))), {-3, -2, -1, -6, -5, -4});
  expect_values(negated(x.with_layout(x.layout().slice(1, 2, 2, -2))), {-3, -1, -6, -4});
  expect_values(negated(x.with_layout(x.layout().slice(0, 1, 1, 1).expand({2, 3}))),
                {-4, -5, -6, -4, -5, -6});
  expect_array(negated(make(DType::f32, {}, {5})), {{}, DType::f32}, {-5});
  expect_array(negated(make(DType::f32, {2, 0}, {})), {{2, 0}, DType::f32}, {});

  const Array y = make(DType::f32, {2, 3}, {0, 0, 0, 0, 0, 0});
  run_into(op::Unary{UnaryFn::neg}, {x}, y.with_layout(y.layout().flip(0).flip(1)));
  expect_values(y, {-6, -5, -4, -3, -2, -1});
  const Array wide = make(DType::f32, {2, 4}, {9, 9, 9, 9, 9, 9, 9, 9});
  run_into(op::Unary{UnaryFn::neg}, {make(DType::f32, {2, 2}, {1, 2, 3, 4})},
           wide.with_layout(wide.layout().slice(1, 0, 2, 2)));
  expect_values(wide, {-1, 9, -2, 9, -3, 9, -4, 9});
}

TEST(ReferenceUnary, AnOutputMayBeItsInputEvenMirrored) {
  const Array x = make(DType::i64, {4}, {1, 2, 3, 4});
  run_into(op::Unary{UnaryFn::square}, {x}, x);
  expect_values(x, {1, 4, 9, 16});
  run_into(op::Unary{UnaryFn::neg}, {x}, x.with_layout(x.layout().flip(0)));
  expect_values(x, {-16, -9, -4, -1});
}

struct BinaryCase {
  BinaryFn fn;
  std::vector<double> a, b, y;
};

TEST(ReferenceBinary, EveryFunctionGivesItsTabulatedValues) {
  const double n = not_a_number;
  const std::vector<BinaryCase> cases = {
      {BinaryFn::add, {1.5, inf, inf}, {2, 1, -inf}, {3.5, inf, n}},
      {BinaryFn::sub, {1.5, 2}, {2, -1}, {-0.5, 3}},
      {BinaryFn::mul, {1.5, inf}, {2, 0}, {3, n}},
      {BinaryFn::div, {1, 1, -1, 0}, {4, 0, 0, 0}, {0.25, inf, -inf, n}},
      {BinaryFn::pow,
       {2.5, 2, -2, 0, -8, n},
       {1.5, -2, 3, 0, 0.5, 0},
       {3.952847075210474, 0.25, -8, 1, n, 1}},
      {BinaryFn::maximum, {1, 2, n, 1, -inf}, {2, 1, 1, n, -1}, {2, 2, n, n, -1}},
      {BinaryFn::minimum, {1, 2, n, 1, -inf}, {2, 1, 1, n, -1}, {1, 1, n, n, -inf}},
      {BinaryFn::remainder,
       {5.5, -5.5, 5.5, -5.5, 1, -1, 4},
       {2, 2, -2, -2, 0, inf, n},
       {1.5, 0.5, -0.5, -1.5, n, inf, n}},
      {BinaryFn::atan2, {1, -3, 0, 0}, {-2, 0.5, -1, 1}, {2.677945044588987, -1.4056476493802699, M_PI, 0}},
      {BinaryFn::eq, {1, 1, n, inf}, {1, 2, n, inf}, {1, 0, 0, 1}},
      {BinaryFn::ne, {1, 1, n, inf}, {1, 2, n, inf}, {0, 1, 1, 0}},
      {BinaryFn::lt, {1, 2, 2, n, -inf}, {2, 2, 1, 1, inf}, {1, 0, 0, 0, 1}},
      {BinaryFn::le, {1, 2, 2, n, -inf}, {2, 2, 1, 1, inf}, {1, 1, 0, 0, 1}},
      {BinaryFn::gt, {1, 2, 2, n, -inf}, {2, 2, 1, 1, inf}, {0, 0, 1, 0, 0}},
      {BinaryFn::ge, {1, 2, 2, n, -inf}, {2, 2, 1, 1, inf}, {0, 1, 1, 0, 0}},
      {BinaryFn::logical_and, {0, 0, 0.5, 0.5, n}, {0, 2, 0, 2, 1}, {0, 0, 0, 1, 1}},
      {BinaryFn::logical_or, {0, 0, 0.5, 0.5, n}, {0, 2, 0, 2, 0}, {0, 1, 1, 1, 1}},
      {BinaryFn::logical_xor, {0, 0, 0.5, 0.5, n}, {0, 2, 0, 2, 0}, {0, 1, 1, 0, 1}},
  };
  EXPECT_EQ(cases.size(), static_cast<std::size_t>(op::binary_fn_count));
  for (const BinaryCase& c : cases) {
    SCOPED_TRACE(op::to_string(c.fn));
    const Array y = binary(c.fn, f64(c.a), f64(c.b));
    EXPECT_EQ(y.dtype(), c.fn >= BinaryFn::eq ? DType::bool_ : DType::f64);
    expect_values(y, c.y, few_ulp);
  }
}

TEST(ReferenceBinary, ARemainderOfZeroHasTheSignOfTheDivisor) {
  const std::vector<double> y = values_of(binary(BinaryFn::remainder, f64({4, 4, -4}), f64({2, -2, 2})));
  EXPECT_EQ(y, (std::vector<double>{0, 0, 0}));
  EXPECT_FALSE(std::signbit(y[0]));
  EXPECT_TRUE(std::signbit(y[1]));
  EXPECT_FALSE(std::signbit(y[2]));
}

TEST(ReferenceBinary, IntegersFollowPythonAndWrapAround) {
  expect_array(binary(BinaryFn::remainder, i64({7, -7, 7, -7, 7, 6}), i64({3, 3, -3, -3, 0, -3})),
               {{6}, DType::i64}, {1, 2, -2, -1, 0, 0});
  expect_values(binary(BinaryFn::remainder, i64({INT64_MIN}), i64({-1})), {0});
  expect_values(
      binary(BinaryFn::pow, i64({3, -2, 5, 1, -1, -1, 2, 0, 0}), i64({4, 3, 0, -5, -2, -3, -1, 0, -1})),
      {81, -8, 1, 1, 1, -1, 0, 1, 0});
  expect_values(binary(BinaryFn::maximum, i64({3, -2}), i64({2, 5})), {3, 5});
  expect_values(binary(BinaryFn::minimum, i64({3, -2}), i64({2, 5})), {2, -2});
  const auto one = [](BinaryFn fn, std::int64_t a, std::int64_t b) {
    return values_of<std::int64_t>(binary(fn, i64({a}), i64({b})))[0];
  };
  EXPECT_EQ(one(BinaryFn::add, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(one(BinaryFn::sub, INT64_MIN, 1), INT64_MAX);
  EXPECT_EQ(one(BinaryFn::mul, INT64_MAX, 2), -2);
  EXPECT_EQ(one(BinaryFn::pow, 2, 64), 0);
  EXPECT_EQ(one(BinaryFn::pow, 3, 41), -420491770248316829);  // 3^41 - 2 * 2^64
  expect_array(binary(BinaryFn::add, make(DType::u8, {1}, {200}), make(DType::u8, {1}, {100})),
               {{1}, DType::u8}, {44});
  expect_array(binary(BinaryFn::mul, make(DType::i32, {1}, {65536}), make(DType::i32, {1}, {65537})),
               {{1}, DType::i32}, {65536});
}

TEST(ReferenceBinary, LargeIntegersCompareExactly) {
  const std::int64_t big = 9007199254740993;  // 2^53 + 1, not a double
  expect_values(binary(BinaryFn::eq, i64({big}), i64({big - 1})), {0});
  expect_values(binary(BinaryFn::gt, i64({big}), i64({big - 1})), {1});
  EXPECT_EQ(
      values_of<std::int64_t>(run(op::Binary{BinaryFn::sub, ScalarSide::right, big - 1}, {i64({big})}))[0],
      1);
}

TEST(ReferenceBinary, IntegerDivisionIsTrueDivision) {
  expect_array(binary(BinaryFn::div, make(DType::i32, {2}, {1, 7}), make(DType::i32, {2}, {4, 0})),
               {{2}, DType::f64}, {0.25, inf});
  expect_array(binary(BinaryFn::atan2, i64({0}), i64({-1})), {{1}, DType::f64}, {M_PI});
}

TEST(ReferenceBinary, OperandsArePromotedFirst) {
  expect_array(binary(BinaryFn::add, make(DType::u8, {1}, {255}), make(DType::i32, {1}, {1})),
               {{1}, DType::i32}, {256});
  expect_array(binary(BinaryFn::add, make(DType::f16, {1}, {1}), make(DType::bf16, {1}, {2})),
               {{1}, DType::f32}, {3});
  expect_array(binary(BinaryFn::mul, make(DType::bool_, {2}, {0, 1}), make(DType::f32, {2}, {2.5, 2.5})),
               {{2}, DType::f32}, {0, 2.5});
  expect_array(binary(BinaryFn::lt, make(DType::i32, {1}, {1}), make(DType::f32, {1}, {1.5})),
               {{1}, DType::bool_}, {1});
  expect_array(binary(BinaryFn::logical_and, make(DType::f32, {2}, {0.5, 0}), make(DType::u8, {2}, {2, 2})),
               {{2}, DType::bool_}, {1, 0});
}

TEST(ReferenceBinary, ScalarsStandOnEitherSide) {
  const Array x = make(DType::f32, {2}, {2, 8});
  const auto with = [&](BinaryFn fn, ScalarSide side, Scalar scalar) {
    return run(op::Binary{fn, side, scalar}, {x});
  };
  expect_values(with(BinaryFn::sub, ScalarSide::right, 1), {1, 7});
  expect_values(with(BinaryFn::sub, ScalarSide::left, 1), {-1, -7});
  expect_values(with(BinaryFn::div, ScalarSide::right, 4), {0.5, 2});
  expect_values(with(BinaryFn::div, ScalarSide::left, 4), {2, 0.5});
  expect_values(with(BinaryFn::pow, ScalarSide::right, 2), {4, 64});
  expect_values(with(BinaryFn::pow, ScalarSide::left, 2), {4, 256});
  expect_values(with(BinaryFn::remainder, ScalarSide::left, 5), {1, 5});
  expect_values(with(BinaryFn::lt, ScalarSide::left, 2), {0, 1});
  // The scalar takes the tensor's dtype before the function is applied.
  expect_array(with(BinaryFn::mul, ScalarSide::right, 0.1), {{2}, DType::f32}, {2 * 0.1f, 8 * 0.1f});
  expect_array(run(op::Binary{BinaryFn::add, ScalarSide::right, 0.5}, {i64({1})}), {{1}, DType::f64}, {1.5});
  expect_array(run(op::Binary{BinaryFn::add, ScalarSide::right, 1}, {make(DType::u8, {1}, {255})}),
               {{1}, DType::u8}, {0});
}

TEST(ReferenceBinary, F32ArithmeticHasTheBitsOfTheHardware) {
  const float a = 0.1f, b = 0.7f;
  const Array x = make<float>(DType::f32, {1}, {a}), y = make<float>(DType::f32, {1}, {b});
  EXPECT_EQ(values_of<float>(binary(BinaryFn::add, x, y))[0], a + b);
  EXPECT_EQ(values_of<float>(binary(BinaryFn::mul, x, y))[0], a * b);
  EXPECT_EQ(values_of<float>(binary(BinaryFn::div, x, y))[0], a / b);
}

TEST(ReferenceBinary, OperandsBroadcastInEveryLayout) {
  const Array row = make(DType::f32, {3}, {1, 2, 3}), column = make(DType::f32, {2, 1}, {10, 20});
  const Meta meta{{2, 3}, DType::f32};
  expect_array(binary(BinaryFn::add, row, column), meta, {11, 12, 13, 21, 22, 23});
  expect_array(binary(BinaryFn::sub, column, row.with_layout(row.layout().flip(0))), meta,
               {7, 8, 9, 17, 18, 19});
  expect_array(binary(BinaryFn::add, make(DType::f32, {}, {1}), make(DType::f32, {}, {2})), {{}, DType::f32},
               {3});
  expect_array(binary(BinaryFn::add, make(DType::f32, {0, 3}, {}), row), {{0, 3}, DType::f32}, {});
  const Array x = make(DType::f32, {2, 2}, {1, 2, 3, 4});
  run_into(op::Binary{BinaryFn::add}, {x, x.with_layout(x.layout().permute({1, 0}))}, x);
  expect_values(x, {2, 5, 5, 8});
}

TEST(ReferenceWhere, ChoosesByElementAndBroadcasts) {
  const Array mask = make(DType::bool_, {2, 1}, {1, 0});
  const Array a = make(DType::f32, {3}, {1, 2, 3}), b = make(DType::f32, {}, {9});
  expect_array(run(op::Where{}, {mask, a, b}), {{2, 3}, DType::f32}, {1, 2, 3, 9, 9, 9});
  expect_array(run(op::Where{ScalarSide::left, 7}, {mask, a}), {{2, 3}, DType::f32}, {7, 7, 7, 1, 2, 3});
  expect_array(run(op::Where{ScalarSide::right, -inf}, {mask, a}), {{2, 3}, DType::f32},
               {1, 2, 3, -inf, -inf, -inf});
}

TEST(ReferenceWhere, PromotesAndKeepsLargeIntegers) {
  const Array mask = make(DType::bool_, {2}, {1, 0});
  expect_array(run(op::Where{}, {mask, make(DType::u8, {2}, {255, 1}), make(DType::f32, {2}, {0.5, 0.5})}),
               {{2}, DType::f32}, {255, 0.5});
  const std::int64_t big = 9007199254740993;
  EXPECT_EQ(values_of<std::int64_t>(run(op::Where{}, {mask, i64({big, 0}), i64({0, -big})})),
            (std::vector<std::int64_t>{big, -big}));
}

TEST(ReferenceWhere, DoesNotLetTheOtherBranchThrough) {
  const Array mask = make(DType::bool_, {2}, {1, 0});
  expect_values(run(op::Where{}, {mask, f64({1, not_a_number}), f64({not_a_number, 2})}), {1, 2});
  const Array bytes = make(DType::u8, {3}, {0, 1, 0xff});  // any byte but 0 is true
  const Array raw(bytes.buffer(), bytes.layout(), DType::bool_);
  expect_values(run(op::Where{ScalarSide::left, 5}, {raw, f64({1, 1, 1})}), {1, 5, 5});
}

}  // namespace
}  // namespace ferrite::testing
