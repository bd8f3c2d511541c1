#include "ferrite/ops/batch_norm.hpp"

#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

// Planes of one element, of a few, and of more than a vector; channels of one element in all.
const Shape batch_norm_shapes[] = {{6, 3},       {4, 2, 3},    {3, 5, 4, 5},  {2, 7, 33},
                                   {1, 4, 8, 9}, {200, 3, 20}, {1, 2, 40000}, {500, 90}};

/// Calls f(channel, place) for every element.
void for_elements(const Shape& shape, const std::function<void(std::size_t, std::size_t)>& f) {
  const std::int64_t plane = shape.numel() / (shape[0] * shape[1]);
  for (std::int64_t i = 0; i < shape.numel(); ++i) f(at(i / plane % shape[1]), at(i));
}

Lists normalized(const Lists& in, const Shape& shape, double eps) {
  const double count = static_cast<double>(shape.numel() / shape[1]);
  Values y(in[0].size()), mean(in[1].size()), rstd(in[1].size());
  for_elements(shape, [&](std::size_t c, std::size_t i) { mean[c] += in[0][i] / count; });
  for_elements(shape,
               [&](std::size_t c, std::size_t i) { rstd[c] += (in[0][i] - mean[c]) * (in[0][i] - mean[c]); });
  for (double& v : rstd) v = 1 / std::sqrt(v / count + eps);
  for_elements(shape, [&](std::size_t c, std::size_t i) {
    y[i] = (in[0][i] - mean[c]) * rstd[c] * in[1][c] + in[2][c];
  });
  return {y, mean, rstd};
}

Lists gradients(const Lists& in, const Shape& shape) {
  const Values &dy = in[0], &x = in[1], &weight = in[2], &mean = in[3], &rstd = in[4];
  const double count = static_cast<double>(shape.numel() / shape[1]);
  Values dx(x.size()), dweight(weight.size()), dbias(weight.size());
  for_elements(shape, [&](std::size_t c, std::size_t i) {
    dbias[c] += dy[i];
    dweight[c] += dy[i] * (x[i] - mean[c]) * rstd[c];
  });
  for_elements(shape, [&](std::size_t c, std::size_t i) {
    dx[i] = (dy[i] - (dbias[c] + (x[i] - mean[c]) * rstd[c] * dweight[c]) / count) * rstd[c] * weight[c];
  });
  return {dx, dweight, dbias};
}

TEST(CpuBatchNorm, MatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const Shape& shape : batch_norm_shapes) {
      SCOPED_TRACE(to_string(Meta{shape, dtype}));
      const Array x = uniform(shape, dtype, 1), weight = uniform({shape[1]}, dtype, 2),
                  bias = uniform({shape[1]}, dtype, 3);
      const double terms = static_cast<double>(shape.numel() / shape[1]);
      check(op::BatchNorm{1e-5}, {x, weight, bias},
            [&](const Lists& in) { return normalized(in, shape, 1e-5); }, {12 + std::sqrt(terms), 1});
    }
  }
}

TEST(CpuBatchNorm, BackwardMatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const Shape& shape : batch_norm_shapes) {
      SCOPED_TRACE(to_string(Meta{shape, dtype}));
      const DType wide = wide_dtype(dtype);
      const Shape channels{shape[1]};
      const Array dy = uniform(shape, dtype, 4), x = uniform(shape, dtype, 5),
                  weight = uniform(channels, dtype, 6);
      const Array mean = uniform(channels, wide, 7, -1, 1), rstd = uniform(channels, wide, 8, 0.5, 2);
      const double terms = static_cast<double>(shape.numel() / shape[1]);
      check(op::BatchNormBackward{}, {dy, x, weight, mean, rstd},
            [&](const Lists& in) { return gradients(in, shape); }, {2 * std::sqrt(terms) + 8, 8});
    }
  }
}

TEST(CpuBatchNorm, PlanesOfVeryDifferentMeansMergeWithoutLoss) {
  Values x;
  for (int i = 0; i < 4 * 50; ++i) x.push_back(i / 50 * 1e3 + i % 2);
  const Array input = array_of({4, 1, 50}, DType::f32, x);
  const Array one = array_of({1}, DType::f32, {1}), zero = array_of({1}, DType::f32, {0});
  check(op::BatchNorm{1e-5}, {input, one, zero},
        [&](const Lists& in) {
          return normalized(in, {4, 1, 50}, 1e-5);
        },
        {8, 1});
}

}  // namespace
}  // namespace ferrite::testing
