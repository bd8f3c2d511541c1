#include "ferrite/ops/layer_norm.hpp"

#include "ferrite/ops/rms_norm.hpp"
#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

const Shape layer_norm_shapes[] = {{1, 1},    {3, 2}, {5, 7},    {4, 33},   {2, 3, 64},
                                   {6, 1000}, {17},   {2, 5000}, {400, 100}};

Shape leading(Shape shape) {
  shape.erase(shape.rank() - 1);
  return shape;
}

/// Lists (y, mean, rstd) of layer_norm, or (y, rstd) of rms_norm.
Lists normalized(const Lists& in, std::size_t n, double eps, bool centred) {
  const std::size_t rows = in[0].size() / n;
  Values y(in[0].size()), mean(rows), rstd(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const double* x = in[0].data() + r * n;
    double square = 0;
    if (centred)
      for (std::size_t i = 0; i < n; ++i) mean[r] += x[i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) square += (x[i] - mean[r]) * (x[i] - mean[r]);
    rstd[r] = 1 / std::sqrt(square / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i)
      y[r * n + i] = (x[i] - mean[r]) * rstd[r] * in[1][i] + (centred ? in[2][i] : 0);
  }
  return centred ? Lists{y, mean, rstd} : Lists{y, rstd};
}

/// From (dy, x, weight, mean, rstd) or (dy, x, weight, rstd).
Lists gradients(const Lists& in, bool centred) {
  const std::size_t n = in[2].size(), rows = in[0].size() / n;
  Values dx(in[0].size());
  std::vector<long double> dweight(n), dbias(n);  // wider than any dtype: the oracle must not round itself
  for (std::size_t r = 0; r < rows; ++r) {
    const double *dy = in[0].data() + r * n, *x = in[1].data() + r * n;
    const double mean = centred ? in[3][r] : 0, rstd = in.back()[r];
    long double total = 0, dot = 0;
    for (std::size_t i = 0; i < n; ++i) {
      total += dy[i] * in[2][i];
      dot += static_cast<long double>(dy[i]) * in[2][i] * (x[i] - mean) * rstd;
      dweight[i] += static_cast<long double>(dy[i]) * (x[i] - mean) * rstd;
      dbias[i] += dy[i];
    }
    const double count = static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      dx[r * n + i] = static_cast<double>(
          (dy[i] * in[2][i] - (centred ? total / count : 0) - (x[i] - mean) * rstd * dot / count) * rstd);
  }
  const Values dw(dweight.begin(), dweight.end()), db(dbias.begin(), dbias.end());
  return centred ? Lists{dx, dw, db} : Lists{dx, dw};
}

class CpuLayerNorm : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Forms, CpuLayerNorm, ::testing::Bool(),
                         [](const auto& form) { return form.param ? "layer_norm" : "rms_norm"; });

TEST_P(CpuLayerNorm, MatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const Shape& shape : layer_norm_shapes) {
      SCOPED_TRACE(to_string(Meta{shape, dtype}));
      const Shape channels{shape.back()};
      const Array x = uniform(shape, dtype, 1), weight = uniform(channels, dtype, 2),
                  bias = uniform(channels, dtype, 3);
      const auto oracle = [&](const Lists& in) { return normalized(in, at(shape.back()), 1e-5, GetParam()); };
      // A row of one element is eps alone: the smallest change of the mean is multiplied by 300.
      const Closeness close{shape.back() < 3 ? 2000 : 12 + std::sqrt(static_cast<double>(shape.back())), 1};
      if (GetParam())
        check(op::LayerNorm{1e-5}, {x, weight, bias}, oracle, close);
      else
        check(op::RmsNorm{1e-5}, {x, weight}, oracle, close);
    }
  }
}

TEST_P(CpuLayerNorm, BackwardMatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const Shape& shape : layer_norm_shapes) {
      SCOPED_TRACE(to_string(Meta{shape, dtype}));
      const Shape channels{shape.back()};
      const DType wide = wide_dtype(dtype);
      const Array dy = uniform(shape, dtype, 4), x = uniform(shape, dtype, 5),
                  weight = uniform(channels, dtype, 6);
      const Array mean = uniform(leading(shape), wide, 7, -1, 1),
                  rstd = uniform(leading(shape), wide, 8, 0.5, 2);
      const auto oracle = [&](const Lists& in) { return gradients(in, GetParam()); };
      const double terms = static_cast<double>(std::max(shape.back(), shape.numel() / shape.back()));
      const Closeness close{4 * std::sqrt(terms) + 8, 8};
      if (GetParam())
        check(op::LayerNormBackward{}, {dy, x, weight, mean, rstd}, oracle, close);
      else
        check(op::RmsNormBackward{}, {dy, x, weight, rstd}, oracle, close);
    }
  }
}

TEST(CpuLayerNormValues, ALargeMeanDoesNotSpoilTheVariance) {
  Values x;
  for (int i = 0; i < 1000; ++i) x.push_back(1e4 + (i % 2));
  const Array y =
      run_list(op::LayerNorm{0}, {array_of({1, 1000}, DType::f32, x), uniform({1000}, DType::f32, 1, 1, 1),
                                  uniform({1000}, DType::f32, 1, 0, 0)})[0];
  const Values values = values_of(y);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], i % 2 ? 1 : -1, 1e-5);
}

TEST(CpuLayerNormValues, ParametersMayHaveAnotherDtypeThanX) {
  const Array x = uniform({6, 40}, DType::bf16, 1), weight = uniform({40}, DType::f32, 2),
              bias = uniform({40}, DType::f32, 3);
  check(op::LayerNorm{1e-5}, {x, weight, bias},
        [&](const Lists& in) { return normalized(in, 40, 1e-5, true); });
}

TEST(CpuLayerNormValues, NoRowsGiveZeroGradients) {
  const Array none = uniform({0, 5}, DType::f32, 1), statistics = uniform({0}, DType::f32, 1);
  const auto out =
      run_list(op::LayerNormBackward{}, {none, none, uniform({5}, DType::f32, 2), statistics, statistics});
  EXPECT_EQ(values_of(out[1]), Values(5, 0.0));
  EXPECT_EQ(values_of(out[2]), Values(5, 0.0));
}

}  // namespace
}  // namespace ferrite::testing
