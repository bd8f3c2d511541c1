// QuantizedLinear of the Cpu backend against loops in double, and the rounding of rows to 8 bits.
#include "ferrite/ops/quantized_linear.hpp"

#include "ferrite/stacks.hpp"
#include "ferrite/tensor/host.hpp"
#include "ops/contraction_support.hpp"

namespace ferrite::testing {
namespace {

Array weights(const Shape& shape, Storage storage = Storage::contiguous) {
  const Array w = allocate(shape, DType::i8, storage);
  Values values;
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(static_cast<double>(integer_at({3, 0}, static_cast<std::uint64_t>(i), -127, 128)));
  assign(w, values);
  return w;
}

/// Weights times their scale are at most 1.
Array scales(std::int64_t n) {
  const Array scale = random({n}, DType::f32);
  Values values = values_of(scale);
  for (double& v : values) v /= 127;
  assign(scale, values);
  return scale;
}

Values naive(const Array& x, const Array& weight, const Array& scale, const Array* bias) {
  const std::int64_t n = x.shape()[0], in = x.shape()[1], out = weight.shape()[0];
  const Values a = values_of(x), w = values_of(weight), s = values_of(scale);
  const Values b = bias ? values_of(*bias) : Values(at(out), 0.0);
  Values y;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = 0;
      for (std::int64_t k = 0; k < in; ++k) sum += a[at(i * in + k)] * w[at(o * in + k)];
      y.push_back(sum * s[at(o)] + b[at(o)]);
    }
  }
  return y;
}

Array result(const Array& x, const Array& weight, const Array& scale, const Array* bias = nullptr,
             Storage storage = Storage::contiguous) {
  Cpu cpu;
  Array y = allocate({x.shape()[0], weight.shape()[0]}, x.dtype(), storage);
  const Array* const in[] = {&x, &weight, &scale, bias};
  run(cpu, op::QuantizedLinear{}, Ins(in, bias ? 4 : 3), Outs(&y, 1));
  return y;
}

TEST(CpuQuantizedLinear, EveryNumberOfRowsAndLength) {
  for (const std::int64_t rows : {1, 2, 5, 16, 17, 40}) {
    for (const std::int64_t inner : {0, 1, 15, 16, 17, 96, 1031}) {
      for (const std::int64_t columns : {1, 3, 4, 130}) {
        SCOPED_TRACE(to_string(Shape{rows, inner, columns}));
        const Array x = random({rows, inner}, DType::f32), w = weights({columns, inner});
        const Array scale = scales(columns), bias = random({columns}, DType::f32);
        const double tolerance = sum_tolerance(DType::f32, inner);
        expect_close(result(x, w, scale, &bias), naive(x, w, scale, &bias), tolerance);
      }
    }
  }
}

TEST(CpuQuantizedLinear, EveryDtypeAndLayout) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t rows : {3, 20}) {
      for (const Storage storage : all_storages) {
        const Array x = random({rows, 48}, dtype, storage), w = weights({24, 48}, storage);
        const Array scale = scales(24), bias = random({24}, dtype);
        const double tolerance = sum_tolerance(dtype, 48);
        const Array y = result(x, w, scale, &bias, storage);
        expect_close(y, naive(x, w, scale, &bias), tolerance);
        expect_close(result(x, w, scale), naive(x, w, scale, nullptr), tolerance);
      }
    }
  }
}

/// Few rows are multiplied as bytes where the processor can: nothing may be lost by that.
TEST(CpuQuantizedLinear, ElementsOfDifferentSizesKeepTheirBits) {
  const Array w = weights({5, 200}), scale = scales(5);
  for (const double factor : {1e30, 1.0, 1e-30, 1e-40}) {
    const Array x = random({2, 200}, DType::f32);
    Values values = values_of(x);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factor / static_cast<double>(1 + i % 100);
    assign(x, values);
    const Values want = naive(x, w, scale, nullptr);
    const Values got = values_of(result(x, w, scale));
    double largest = 0;
    for (const double v : want) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], std::max(1e-6 * largest, 3e-45)) << factor << " " << i;
  }
}

TEST(CpuQuantizedLinear, NumbersThatAreNotFiniteStaySo) {
  const Array w = weights({3, 20}), scale = scales(3);
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const Array x = random({2, 20}, DType::f32);
    Values values = values_of(x);
    values[25] = bad;
    assign(x, values);
    const Values y = values_of(result(x, w, scale)), want = naive(x, w, scale, nullptr);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(y[i], want[i], 1e-3);
    for (std::size_t i = 3; i < 6; ++i) EXPECT_FALSE(std::isfinite(y[i]));
  }
}

TEST(QuantizedLinear, RefusesWhatDoesNotFit) {
  Cpu b;
  const auto x = zeros(b, {2, 4});
  const auto w = full(b, {3, 4}, 1, DType::i8);
  EXPECT_THROW(quantized_linear(x, w, zeros(b, {4})), ShapeError);
  EXPECT_THROW(quantized_linear(x, full(b, {3, 5}, 1, DType::i8), zeros(b, {3})), ShapeError);
  EXPECT_THROW(quantized_linear(x, zeros(b, {3, 4}), zeros(b, {3})), DTypeError);
  EXPECT_THROW(quantized_linear(x, w, zeros(b, {3}, DType::i32)), DTypeError);
  EXPECT_THROW(quantize_rows(w), DTypeError);
  EXPECT_THROW(quantize_rows(zeros(b, {4})), ShapeError);
}

TEST(QuantizeRows, RoundsToTheNearest) {
  Cpu b;
  Rng rng(1);
  const auto w = randn(b, {40, 70}, rng, 0, 3);
  const auto q = quantize_rows(w);
  EXPECT_EQ(q.weight.dtype(), DType::i8);
  const auto error = abs(dequantize_rows(q.weight, q.scale, DType::f32) - w);
  EXPECT_LE(max(error / unsqueeze(q.scale, 1)).item(), 0.5001);
  const auto largest = max(abs(cast(q.weight, DType::i32)), {1}).to_vector<int>();
  for (const int v : largest) EXPECT_EQ(v, 127);
}

TEST(QuantizeRows, ARowOfZerosStaysOne) {
  Cpu b;
  const auto q = quantize_rows(from_vector(b, std::vector<float>{0, 0, -2, 1}, {2, 2}));
  EXPECT_EQ(q.weight.to_vector<int>(), (std::vector<int>{0, 0, -127, 64}));
  EXPECT_EQ(q.scale.to_vector<float>()[0], 1);
  EXPECT_EQ(quantize_rows(zeros(b, {3, 0})).weight.shape(), (Shape{3, 0}));
}

TEST(QuantizedLinear, HasGradientsOfAllButTheWeight) {
  Autodiff<Cpu> b;
  const auto x = parameter(from_vector(b, std::vector<double>{1, 2}, {1, 2}), "x");
  const auto w = from_vector(b, std::vector<std::int8_t>{3, 4, -5, 6}, {2, 2});
  const auto scale = parameter(from_vector(b, std::vector<double>{0.5, 2}), "scale");
  const auto bias = parameter(from_vector(b, std::vector<double>{1, 1}), "bias");
  const auto grads = sum(quantized_linear(x, w, scale, bias)).backward();
  EXPECT_EQ(grads.of(x).to_vector<double>(), (std::vector<double>{0.5 * 3 - 2 * 5, 0.5 * 4 + 2 * 6}));
  EXPECT_EQ(grads.of(scale).to_vector<double>(), (std::vector<double>{11, 7}));
  EXPECT_EQ(grads.of(bias).to_vector<double>(), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace ferrite::testing
