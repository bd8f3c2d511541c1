// Linear of the Cpu backend against loops in double.
#include "ferrite/ops/linear.hpp"

#include "ops/contraction_support.hpp"

namespace ferrite::testing {
namespace {

constexpr Activation all_activations[] = {Activation::none, Activation::relu, Activation::gelu,
                                          Activation::silu, Activation::tanh, Activation::sigmoid};

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      return x;
  }
}

Values naive_linear(const Array& x, const Array& weight, const Array* bias) {
  const std::int64_t n = x.shape()[0], in = x.shape()[1], out = weight.shape()[0];
  const Values a = values_of(x), w = values_of(weight), b = bias ? values_of(*bias) : Values(at(out), 0.0);
  Values y;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t o = 0; o < out; ++o) {
      y.push_back(b[at(o)]);
      for (std::int64_t k = 0; k < in; ++k) y.back() += a[at(i * in + k)] * w[at(o * in + k)];
    }
  }
  return y;
}

void expect_results(const op::Linear& op, std::span<const Array> out, const Values& pre, double tolerance) {
  Values y = pre;
  for (double& v : y) v = activated(op.activation, v);
  expect_close(out[0], y, tolerance);
  if (out.size() > 1) expect_close(out[1], pre, tolerance);
}

TEST(CpuLinear, AppliesBiasAndEveryActivation) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Activation activation : all_activations) {
      const op::Linear op{activation};
      for (const Shape& e :
           {Shape{1, 1, 1}, {3, 5, 7}, {1, 40, 33}, {70, 31, 1}, {65, 130, 257}, {200, 300, 260}}) {
        SCOPED_TRACE(std::string(op::to_string(activation)) + " " + to_string(e));
        const Array x = random({e[0], e[1]}, dtype), w = random({e[2], e[1]}, dtype, Storage::contiguous, 2);
        const Array b = random({e[2]}, dtype, Storage::contiguous, 3);
        const double tolerance = 4 * sum_tolerance(dtype, e[1]);
        expect_results(op, run(op, {x, w, b}), naive_linear(x, w, &b), tolerance);
        expect_results(op, run(op, {x, w}), naive_linear(x, w, nullptr), tolerance);
      }
    }
  }
}

TEST(CpuLinear, AddsAResidual) {
  const auto added = [](Values sums, const Array& residual) {
    const Values more = values_of(residual);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
    return sums;
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Storage storage : all_storages) {
      for (const Shape& e : {Shape{1, 1, 1}, {3, 0, 7}, {1, 40, 33}, {70, 31, 1}, {65, 31, 257}}) {
        SCOPED_TRACE(to_string(e));
        const Array x = random({e[0], e[1]}, dtype), w = random({e[2], e[1]}, dtype, Storage::contiguous, 2);
        const Array b = random({e[2]}, dtype, Storage::contiguous, 3);
        const Array r = random({e[0], e[2]}, dtype, storage, 4);
        const double tolerance = 4 * sum_tolerance(dtype, e[1] + 2);
        expect_close(run(op::Linear{}, {x, w, b, r})[0], added(naive_linear(x, w, &b), r), tolerance);
        expect_close(run(op::Linear{}, {x, w, r})[0], added(naive_linear(x, w, nullptr), r), tolerance);
      }
    }
  }
}

TEST(CpuLinear, KeepsThePreActivationWhereTheDerivativeNeedsIt) {
  const Array x = random({4, 3}, DType::f32), w = random({5, 3}, DType::f32);
  EXPECT_EQ(run(op::Linear{Activation::gelu}, {x, w}).size(), 2u);
  EXPECT_EQ(run(op::Linear{Activation::tanh}, {x, w}).size(), 1u);
}

TEST(CpuLinear, TakesEveryStorageOfInputsAndOutputs) {
  for (const Storage storage : all_storages) {
    const Array x = random({33, 20}, DType::f32, storage), w = random({41, 20}, DType::f32, storage, 2);
    const Array all_bias = random({2, 41}, DType::f32, storage, 3);
    const Array b =
        all_bias.with_layout(Layout{{41}, {all_bias.layout().strides[1]}, all_bias.layout().offset});
    for (const Activation activation : all_activations) {
      const op::Linear op{activation};
      std::vector<Array> out;
      for (const Meta& meta : op.infer(metas_of({x, w, b})))
        out.push_back(allocate(meta.shape, meta.dtype, storage));
      run_kernel_into(op, {x, w, b}, out);
      expect_results(op, out, naive_linear(x, w, &b), 1e-5);
    }
  }
}

TEST(CpuLinear, SplitsLongRows) {
  const Array x = random({4, 20000}, DType::f32), w = random({6, 20000}, DType::f32, Storage::contiguous, 2);
  const Array b = random({6}, DType::f32, Storage::contiguous, 3);
  const op::Linear op{Activation::silu};
  expect_results(op, run(op, {x, w, b}), naive_linear(x, w, &b), sum_tolerance(DType::f32, 20000));
}

TEST(CpuLinear, TakesEmptyExtents) {
  const Array b = random({4}, DType::f32);
  const Array y =
      run(op::Linear{Activation::relu}, {random({3, 0}, DType::f32), random({4, 0}, DType::f32), b})[0];
  expect_results({Activation::relu}, {&y, 1},
                 naive_linear(random({3, 0}, DType::f32), random({4, 0}, DType::f32), &b), 0);
  EXPECT_EQ(run(op::Linear{}, {random({0, 3}, DType::f32), random({4, 3}, DType::f32)})[0].shape(),
            (Shape{0, 4}));
}

TEST(CpuLinear, LeavesOtherDtypesToTheComposition) {
  const Meta half{{2, 3}, DType::f16}, single{{2, 3}, DType::f32};
  EXPECT_FALSE(accepts(Cpu{}, op::Linear{}, std::vector{half, half}));
  EXPECT_FALSE(accepts(Cpu{}, op::Linear{}, std::vector{half, single}));
  EXPECT_TRUE(accepts(Cpu{}, op::Linear{}, std::vector{single, single}));
}

TEST(CpuLinear, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const Shape& e : {Shape{300, 200, 500}, {8, 9000, 12}}) {
    expect_same_bits_for_any_thread_count([&] {
      return run(
          op::Linear{Activation::gelu},
          {random({e[0], e[1]}, DType::f32), random({e[2], e[1]}, DType::f32), random({e[2]}, DType::f32)});
    });
  }
}

}  // namespace
}  // namespace ferrite::testing
