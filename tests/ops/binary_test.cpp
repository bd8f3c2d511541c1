// Cpu's binary functions: dtypes, layouts, broadcasting, scalars, accumulation.
#include "ferrite/ops/formulas.hpp"
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

using op::BinaryFn;
using op::ScalarSide;

constexpr BinaryFn binary_fn(int i) { return static_cast<BinaryFn>(i); }

/// The definition, in double or, for integers, in i64.
Values applied(BinaryFn fn, const Values& a, const Values& b, DType operand) {
  Values y(a.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (is_floating(operand) || op::is_logical(fn))
      y[i] = formulas::binary(formulas::Standard<double>{}, fn, a[i], b[i]);
    else
      y[i] = static_cast<double>(formulas::binary(formulas::Standard<std::int64_t>{}, fn,
                                                  static_cast<std::int64_t>(a[i]),
                                                  static_cast<std::int64_t>(b[i])));
  }
  return y;
}

void expect_binary(BinaryFn fn, const Array& a, const Array& b, Form out_form = Form::contiguous) {
  const op::Binary op{fn};
  const Meta metas[] = {a.meta(), b.meta()};
  const DType operand = op.operand_dtype(metas);
  const Array y = run(op, {a, b}, out_form);
  SCOPED_TRACE(std::string(op::to_string(fn)) + " " + to_string(a.meta()) + " " + to_string(b.meta()));
  Values expected = applied(fn, broadcast_values(a, y.shape()), broadcast_values(b, y.shape()), operand);
  if (operand == DType::u8)
    for (double& v : expected) v -= 256 * std::floor(v / 256);
  expect_close(values_of(y), expected, 4 * epsilon(y.dtype()));
}

TEST(CpuBinary, EveryFunctionAgreesWithItsDefinitionInEveryLayout) {
  for (int i = 0; i < op::binary_fn_count; ++i) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
      const bool small = binary_fn(i) == BinaryFn::pow;  // integer powers must not overflow a double
      for (const Form form : all_forms) {
        const Array a = random(dtype, {6, 5, 70}, 1, small ? 0.5 : 1, small ? 4 : 90, form);
        const Array b = random(dtype, {6, 5, 70}, 2, 1, 4);
        expect_binary(binary_fn(i), a, b);
        expect_binary(binary_fn(i), b, a, form);
      }
    }
  }
}

TEST(CpuBinary, BroadcastsRowsColumnsAndScalarTensors) {
  const Array a = random(DType::f32, {37, 1, 129}, 1);
  for (const Shape& shape :
       {Shape{129}, Shape{41, 129}, Shape{41, 1}, Shape{37, 41, 1}, Shape{}, Shape{1, 1, 1}}) {
    expect_binary(BinaryFn::sub, a, random(DType::f32, shape, 2));
    expect_binary(BinaryFn::mul, random(DType::f32, shape, 2), a, Form::transposed);
    expect_binary(BinaryFn::lt, a, random(DType::f16, shape, 2));
  }
  expect_binary(BinaryFn::add, random(DType::f32, {0, 3}, 1), random(DType::f32, {3}, 1));
}

TEST(CpuBinary, PromotesEveryPairOfDTypes) {
  for (const DType left : arithmetic_dtypes) {
    for (const DType right : arithmetic_dtypes) {
      const Array a = random(left, {4, 33}, 1, 0, 3), b = random(right, {33}, 2, 1, 3);
      expect_binary(BinaryFn::maximum, a, b);
      expect_binary(BinaryFn::le, a, b);
      expect_binary(BinaryFn::logical_xor, a, b);
      if (left != DType::bool_ || right != DType::bool_) expect_binary(BinaryFn::add, a, b);
    }
  }
}

TEST(CpuBinary, TakesScalarsOnEitherSideRoundedToTheTensorsDType) {
  const double third = 1.0 / 3;
  for (const DType dtype : floating_dtypes) {
    for (const Form form : all_forms) {
      const Array x = random(dtype, {3, 3000}, 1, 1, 2, form);
      double rounded = third;
      visit_dtype(dtype, [&]<class T>() { rounded = convert<double>(convert<T>(third)); });
      Values left = values_of(x), right = left;
      for (double& v : left) v = rounded - v;
      for (double& v : right) v = v / rounded;
      expect_close(values_of(run(op::Binary{BinaryFn::sub, ScalarSide::left, third}, {x})), left,
                   2 * epsilon(dtype));
      expect_close(values_of(run(op::Binary{BinaryFn::div, ScalarSide::right, third}, {x})), right,
                   2 * epsilon(dtype));
    }
  }
  const Array big = make<std::int64_t>(DType::i64, {1}, {(std::int64_t{1} << 53) + 1});
  const Array sum = run(op::Binary{BinaryFn::add, ScalarSide::right, std::int64_t{1}}, {big});
  EXPECT_EQ(values_of<std::int64_t>(sum)[0], (std::int64_t{1} << 53) + 2);
}

TEST(CpuBinary, AnExtremumTakesABoundBeyondTheRangeAsItsEnd) {
  const Array x = make<double>(DType::u8, {3}, {0, 7, 255}), y = make<double>(DType::i32, {2}, {-3, 7});
  expect_close(values_of(run(op::Binary{BinaryFn::maximum, ScalarSide::right, -5}, {x})), {0, 7, 255}, 0);
  expect_close(values_of(run(op::Binary{BinaryFn::maximum, ScalarSide::left, 300}, {x})), {255, 255, 255}, 0);
  expect_close(values_of(run(op::Binary{BinaryFn::minimum, ScalarSide::right, 300}, {x})), {0, 7, 255}, 0);
  const op::Binary least{BinaryFn::minimum, ScalarSide::right, std::int64_t{1} << 40};
  expect_close(values_of(run(least, {y})), {-3, 7}, 0);
}

TEST(CpuBinary, NaNWinsMaximumAndMinimumAndFailsComparisons) {
  const Array a = make<double>(DType::f32, {4}, {nan, 1, nan, inf}),
              b = make<double>(DType::f32, {4}, {1, nan, nan, 2});
  expect_close(values_of(run(op::Binary{BinaryFn::maximum}, {a, b})), {nan, nan, nan, inf}, 0);
  expect_close(values_of(run(op::Binary{BinaryFn::minimum}, {a, b})), {nan, nan, nan, 2}, 0);
  expect_close(values_of(run(op::Binary{BinaryFn::ge}, {a, b})), {0, 0, 0, 1}, 0);
  expect_close(values_of(run(op::Binary{BinaryFn::ne}, {a, b})), {1, 1, 1, 1}, 0);
  expect_close(values_of(run(op::Binary{BinaryFn::logical_and}, {a, b})), {1, 1, 1, 1}, 0);
}

TEST(CpuBinary, AddsToAnOutputOfAnyLayout) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32}) {
    for (const Form form : all_forms) {
      const Array a = random(dtype, {70, 80}, 1, 0, 5), b = random(dtype, {80}, 2, 1, 5);
      const Array out = random(dtype, {70, 80}, 3, 0, 5, form);
      Values expected = values_of(out);
      const Values x = values_of(a), y = broadcast_values(b, a.shape());
      for (std::size_t i = 0; i < x.size(); ++i) expected[i] += x[i] * y[i];
      run_into(op::Binary{BinaryFn::mul}, {a, b}, out, add_to_output);
      expect_close(values_of(out), expected, 2 * epsilon(dtype));
    }
  }
}

TEST(CpuBinary, RefusesToAddTruthValues) {
  const Array x = random(DType::f32, {3}, 1), out = random(DType::bool_, {3}, 1);
  EXPECT_THROW(run_into(op::Binary{BinaryFn::lt}, {x, x}, out, add_to_output), BackendError);
  EXPECT_THROW(run_into(op::Binary{BinaryFn::logical_or}, {x, x}, out, add_to_output), BackendError);
}

TEST(CpuBinary, WorksInPlaceAndForAnyNumberOfThreads) {
  constexpr std::int64_t n = 2 * 32768 + 5;
  const Array b = random(DType::f32, {n}, 2);
  expect_thread_invariance([&] {
    const Array a = random(DType::f32, {n}, 1);
    const Values before = values_of(a), other = values_of(b);
    run_into(op::Binary{BinaryFn::mul}, {a, b}, a);
    const auto after = values_of<float>(a);
    for (std::size_t i = 0; i < after.size(); ++i)
      EXPECT_EQ(after[i], static_cast<float>(before[i]) * static_cast<float>(other[i]));
    return a;
  });
}

}  // namespace
}  // namespace ferrite::cpu_test
