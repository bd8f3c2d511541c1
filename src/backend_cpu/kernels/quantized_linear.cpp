// QuantizedLinear. Few rows, as in decoding, are limited by reading the weights: every 8-bit weight is read
// once. For many rows blocks of the weight are widened to f32, for the product of f32 matrices.
#include "ferrite/ops/quantized_linear.hpp"

#include "backend_cpu/gemm/products.hpp"
#include "backend_cpu/kit/activation_rows.hpp"
#include "backend_cpu/kit/int8_dots.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

constexpr std::int64_t few_rows = 16;

/// The operands, dense; `y` gets the result.
struct QuantizedProblem {
  const float* x;
  const std::int8_t* weight;
  const float *scale, *bias;  // bias may be null
  RowFunction<float> activate;
  float* y;
  std::int64_t rows, columns, inner;

  /// Products of x and the weights from `column` on become results.
  void finish(float* products, std::int64_t column, std::int64_t n) const {
    const float *const s = scale + column, *const b = bias ? bias + column : nullptr;
    if (b)
      for_each_index(n, [=](std::int64_t j) { products[j] = products[j] * s[j] + b[j]; });
    else
      for_each_index(n, [=](std::int64_t j) { products[j] *= s[j]; });
    if (activate) activate(products, products, n);
  }
  /// f(begin, end) for shares of the columns: a few for every thread, and long enough for processors to
  /// fetch ahead. The shares change no bit of a result.
  template <class F>
  void for_column_ranges(F&& f) const {
    constexpr std::int64_t least = 1 << 14, most = 1 << 18, per_thread = 2;
    const std::int64_t share = columns * inner / (per_thread * num_threads());
    const std::int64_t grain = std::clamp(share, least, most) / std::max<std::int64_t>(inner, 1);
    parallel_ranges(columns, std::max<std::int64_t>(grain, 1), f);
  }
};

#if defined(FERRITE_DOTPROD)
bool is_finite(const float* x, std::int64_t n) {
  return simd::sum<float>(n, [&](auto at) { return at(x) * 0.0f; }) == 0;
}

void multiply_few_bytes(const QuantizedProblem& p) {
  const FixedPointRows x(p.x, p.rows, p.inner);
  p.for_column_ranges([&](std::int64_t begin, std::int64_t end) {
    // Neighbouring rows would be read in short pieces by turns: rows far apart make long streams.
    const std::int64_t distance = divide_up(end - begin, std::int64_t{dot_rows});
    for (std::int64_t j = begin; j < begin + distance; ++j) {
      const std::int8_t* weights[dot_rows];  // a row beyond the end is the last
      for (int r = 0; r < dot_rows; ++r)
        weights[r] = p.weight + std::min(j + r * distance, end - 1) * p.inner;
      for (std::int64_t i = 0; i < p.rows; ++i) {
        double sums[dot_rows];
        multiply_bytes(x, i, weights, p.inner, sums);
        for (int r = 0; r < dot_rows; ++r)
          p.y[i * p.columns + std::min(j + r * distance, end - 1)] = static_cast<float>(sums[r] * x.unit(i));
      }
    }
    for (std::int64_t i = 0; i < p.rows; ++i) p.finish(p.y + i * p.columns + begin, begin, end - begin);
  });
}
#endif

void multiply_few(const QuantizedProblem& p) {
#if defined(FERRITE_DOTPROD)
  if (multiplies_bytes() && is_finite(p.x, p.rows * p.inner)) return multiply_few_bytes(p);
#endif
  p.for_column_ranges([&](std::int64_t begin, std::int64_t end) {
    const Scratch<float> scratch(p.inner);
    const float* const weights = scratch.data();
    for (std::int64_t j = begin; j < end; ++j) {
      convert_block(DType::i8, p.weight + j * p.inner, DType::f32, scratch.data(), p.inner);
      for (std::int64_t i = 0; i < p.rows; ++i) {
        const float* const x = p.x + i * p.inner;
        p.y[i * p.columns + j] = simd::sum<float>(p.inner, [&](auto at) { return at(x) * at(weights); });
      }
    }
    for (std::int64_t i = 0; i < p.rows; ++i) p.finish(p.y + i * p.columns + begin, begin, end - begin);
  });
}

void multiply_many(Products products, const QuantizedProblem& p) {
  constexpr std::int64_t most_elements = 1 << 19, least_columns = 64;
  const std::int64_t block =
      std::min(p.columns, std::max(least_columns, most_elements / std::max<std::int64_t>(p.inner, 1)));
  const Scratch<float> weights(block * p.inner);
  for (std::int64_t column = 0; column < p.columns; column += block) {
    const std::int64_t n = std::min(block, p.columns - column);
    parallel_ranges(n * p.inner, chunk_size, [&](std::int64_t begin, std::int64_t end) {
      convert_block(DType::i8, p.weight + column * p.inner + begin, DType::f32, weights.data() + begin,
                    end - begin);
    });
    multiply<float>(products, 1, Matrix<const float>(p.x, p.rows, p.inner),
                    Matrix<const float>(weights.data(), n, p.inner).transposed(),
                    Matrix<float>(p.y + column, p.rows, n, p.columns), false,
                    [&](const Matrix<float>& tile, std::int64_t, std::int64_t first) {
                      for (std::int64_t i = 0; i < tile.rows; ++i)
                        p.finish(&tile(i, 0), column + first, tile.columns);
                    });
  }
}

}  // namespace

bool accepts(const Cpu&, const op::QuantizedLinear&, MetaSpan in) {
  return in[0].dtype != DType::f64 && in[2].dtype != DType::f64 &&
         (in.size() < 4 || in[3].dtype != DType::f64);
}

void run(Cpu& cpu, const op::QuantizedLinear& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Array x = dense(cpu, in[0], DType::f32), weight = dense(cpu, in[1]);
  const Array scale = dense(cpu, in[2], DType::f32);
  const Array bias = in.size() > 3 ? dense(cpu, in[3], DType::f32) : Array();
  const bool in_place = out[0].dtype() == DType::f32 && out[0].layout().is_contiguous();
  const Array y = in_place ? out[0] : cpu.allocate({out[0].shape(), DType::f32});
  const QuantizedProblem problem{x.data<float>(),
                                 weight.data<std::int8_t>(),
                                 scale.data<float>(),
                                 bias.defined() ? bias.data<float>() : nullptr,
                                 row_function<float>(op.activation),
                                 y.data<float>(),
                                 x.shape()[0],
                                 weight.shape()[0],
                                 x.shape()[1]};
  if (problem.rows <= few_rows)
    multiply_few(problem);
  else
    multiply_many(cpu.products(), problem);
  if (!in_place) copy_into(cpu, y, out[0]);
}

}  // namespace ferrite
