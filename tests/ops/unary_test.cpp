// Cpu's unary functions and their derivatives against the definitions in a wider type.
#include <bit>

#include "ferrite/ops/formulas.hpp"
#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

using op::UnaryFn;

constexpr UnaryFn unary_fn(int i) { return static_cast<UnaryFn>(i); }
constexpr bool has_derivative(UnaryFn fn) {
  return fn != UnaryFn::neg && fn != UnaryFn::sign && !(fn >= UnaryFn::floor && fn <= UnaryFn::round) &&
         fn < UnaryFn::logical_not;
}

/// Where the function is defined and its values are neither huge nor tiny.
struct Domain {
  double low, high;
};
Domain domain_of(UnaryFn fn) {
  const bool positive = fn == UnaryFn::sqrt || fn == UnaryFn::rsqrt || fn == UnaryFn::reciprocal ||
                        fn == UnaryFn::log || fn == UnaryFn::log1p;
  return positive ? Domain{0.05, 8} : Domain{-3, 3};
}

/// In long double: in double, f64 would be its own oracle.
Values applied(UnaryFn fn, const Array& x, double alpha) {
  Values y = values_of(x);
  const formulas::Standard<long double> m;
  for (double& v : y) v = static_cast<double>(formulas::unary(m, fn, static_cast<long double>(v), alpha));
  return y;
}

TEST(CpuUnary, EveryFunctionAgreesWithItsDefinitionForFloatsOfEveryLayout) {
  for (int i = 0; i < op::unary_fn_count; ++i) {
    const UnaryFn fn = unary_fn(i);
    const auto [low, high] = domain_of(fn);
    for (const DType dtype : floating_dtypes) {
      for (const Form form : all_forms) {
        for (const Shape& shape : {Shape{5, 7, 33}, Shape{2111, 3}, Shape{1}, Shape{}, Shape{4, 0, 3}}) {
          const Array x = random(dtype, shape, 7, low, high, form);
          const Form out_form = form == Form::stepped ? Form::transposed : Form::contiguous;
          SCOPED_TRACE(std::string(op::to_string(fn)) + " " + to_string(x.meta()) + " form " +
                       std::to_string(static_cast<int>(form)));
          // Most reach 1 or 2 epsilon, both gelus 6 or 7 where a rounded exponent makes a small result.
          expect_close(values_of(run(op::Unary{fn, 0.5}, {x}, out_form)), applied(fn, x, 0.5),
                       8 * epsilon(dtype));
        }
      }
    }
  }
}

TEST(CpuUnary, IntegersAreExactAndRealFunctionsPromoteThem) {
  for (int i = 0; i < op::unary_fn_count; ++i) {
    const UnaryFn fn = unary_fn(i);
    SCOPED_TRACE(op::to_string(fn));
    for (const DType dtype : integer_dtypes) {
      const Array x = random(dtype, {3000}, 3, fn == UnaryFn::log ? 1 : 0, 80, Form::stepped);
      const Array y = run(op::Unary{fn}, {x});
      Values expected = values_of(x);
      for (double& v : expected)
        v = is_floating(y.dtype())
                ? formulas::unary(formulas::Standard<double>{}, fn, v, 1.0)
                : static_cast<double>(formulas::unary(formulas::Standard<std::int64_t>{}, fn,
                                                      static_cast<std::int64_t>(v), std::int64_t{1}));
      if (fn == UnaryFn::neg && dtype == DType::u8)
        for (double& v : expected) v = v < 0 ? v + 256 : v;
      if ((fn == UnaryFn::square) && dtype == DType::u8)
        for (double& v : expected) v = std::fmod(v, 256);
      expect_close(values_of(y), expected, 8 * epsilon(y.dtype()));
    }
  }
}

/// The distance in units of the last place of `expected`.
double ulps(float actual, double expected) {
  const auto rounded = static_cast<float>(expected);
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : inf;
  if (std::isinf(rounded) || std::isinf(actual)) return rounded == actual ? 0 : inf;
  const double magnitude = std::max(std::abs(expected), 0x1p-126);
  return std::abs(static_cast<double>(actual) - expected) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

TEST(CpuUnary, F32FunctionsStayWithinAFewUlpOverTheWholeRange) {
  struct Case {
    UnaryFn fn;
    double bound;
  };
  const Case cases[] = {{UnaryFn::exp, 1.5},      {UnaryFn::expm1, 2},   {UnaryFn::log, 1.5},
                        {UnaryFn::log1p, 2},      {UnaryFn::sin, 1},     {UnaryFn::cos, 1},
                        {UnaryFn::tan, 1},        {UnaryFn::tanh, 6},    {UnaryFn::sigmoid, 3},
                        {UnaryFn::erf, 1},        {UnaryFn::sqrt, 0.5},  {UnaryFn::rsqrt, 1.5},
                        {UnaryFn::softplus, 2.5}, {UnaryFn::gelu_erf, 1}};
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 49999)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (const float special : {0.0f, -0.0f, 1.0f, -1.0f, 88.7f, 88.8f, -87.4f, -103.9f, -104.5f, 3e38f, -3e38f,
                              1e-45f, 9.02f, 1e-8f, INFINITY, -INFINITY, NAN})
    x.push_back(special);
  const Array in = make(DType::f32, {static_cast<std::int64_t>(x.size())}, x);
  for (const auto& [fn, bound] : cases) {
    const auto y = values_of<float>(run(op::Unary{fn}, {in}));
    for (std::size_t i = 0; i < x.size(); ++i) {
      // Sigmoid's and softplus' denormal results may be flushed to 0.
      const double expected =
          formulas::unary(formulas::Standard<double>{}, fn, static_cast<double>(x[i]), 1.0);
      if (std::abs(expected) < 0x1p-126 && std::abs(y[i]) <= 0x1p-126f) continue;
      ASSERT_LE(ulps(y[i], expected), bound)
          << op::to_string(fn) << "(" << x[i] << ") = " << y[i] << ", not " << expected;
    }
  }
}

TEST(CpuUnary, AResultDoesNotDependOnWhereItsElementStands) {
  for (int i = 0; i < op::unary_fn_count; ++i) {
    for (const float value : {0.3f, 2.7f, 1234.5f, 1e9f}) {
      const Array x = make(DType::f32, {67}, std::vector<float>(67, value));
      const auto y = values_of<float>(run(op::Unary{unary_fn(i)}, {x}));
      for (const float v : y) ASSERT_EQ(v, y[0]) << op::to_string(unary_fn(i)) << " of " << value;
    }
  }
}

TEST(CpuUnary, RelUAndItsLikeKeepNaNAndStepAtZero) {
  const Array x = make<double>(DType::f32, {5}, {nan, -inf, -0.0, 0.5, inf});
  expect_close(values_of(run(op::Unary{UnaryFn::relu}, {x})), {nan, 0, 0, 0.5, inf}, 0);
  expect_close(values_of(run(op::Unary{UnaryFn::leaky_relu, 0.5}, {x})), {nan, -inf, 0, 0.5, inf}, 0);
  expect_close(values_of(run(op::Unary{UnaryFn::sign}, {x})), {nan, -1, 0, 1, 1}, 0);
  expect_close(values_of(run(op::Unary{UnaryFn::tanh}, {x})), {nan, -1, 0, std::tanh(0.5), 1}, 1e-6);
}

TEST(CpuUnaryBackward, EveryDerivativeAgreesWithItsDefinition) {
  for (int i = 0; i < op::unary_fn_count; ++i) {
    const UnaryFn fn = unary_fn(i);
    if (!has_derivative(fn)) continue;
    const auto [low, high] = domain_of(fn);
    for (const DType dtype : floating_dtypes) {
      for (const Form form : all_forms) {
        const Array s = random(dtype, {9, 257}, 5, low, high, form), dy = random(dtype, {9, 257}, 6);
        Values expected = values_of(s);
        const Values gradient = values_of(dy);
        for (std::size_t k = 0; k < expected.size(); ++k)
          expected[k] = formulas::backward(formulas::Standard<double>{}, fn, expected[k], gradient[k], 0.5);
        SCOPED_TRACE(op::to_string(fn));
        expect_close(values_of(run(op::UnaryBackward{fn, 0.5}, {s, dy})), expected, 16 * epsilon(dtype), 1);
      }
    }
  }
}

TEST(CpuUnaryBackward, AClosedGateLetsNoInfinityThrough) {
  const Array s = make<double>(DType::f32, {2}, {-1, 1}), dy = make<double>(DType::f32, {2}, {inf, inf});
  expect_close(values_of(run(op::UnaryBackward{UnaryFn::relu}, {s, dy})), {0, inf}, 0);
}

TEST(CpuUnary, AccumulationAddsBeforeItRounds) {
  for (const DType dtype : floating_dtypes) {
    for (const Form form : all_forms) {
      const Array x = random(dtype, {3, 5000}, 1, -1, 1), out = random(dtype, {3, 5000}, 2, -1, 1, form);
      Values expected = values_of(out);
      const Values in = values_of(x);
      for (std::size_t i = 0; i < in.size(); ++i) expected[i] += std::exp(in[i]);
      run_into(op::Unary{UnaryFn::exp}, {x}, out, add_to_output);
      expect_close(values_of(out), expected, 2 * epsilon(dtype), 1);
    }
  }
}

TEST(CpuUnary, WorksInPlaceAcrossChunksAndForAnyNumberOfThreads) {
  constexpr std::int64_t n = 3 * 32768 + 17;
  const Array x = random(DType::f32, {n}, 1);
  const Array expected = run(op::Unary{UnaryFn::tanh}, {x});
  expect_thread_invariance([&] {
    const Array y = random(DType::f32, {n}, 1);
    run_into(op::Unary{UnaryFn::tanh}, {y}, y);
    expect_same_bits(y, expected);
    return y;
  });
}

}  // namespace
}  // namespace ferrite::cpu_test
