// lu: shape rule, cost, and elimination on the host.
#include "ferrite/ops/lu.hpp"

#include <algorithm>
#include <cmath>

namespace ferrite::op {

Metas Lu::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_matrices(type_name, "a", in[0]);
  Shape order = in[0].shape;
  order.erase(order.rank() - 1);
  return {in[0], Meta{order, DType::i64}};
}
Cost Lu::cost(MetaSpan in, MetaSpan out) const {
  const double m = static_cast<double>(in[0].shape[in[0].shape.rank() - 2]),
               n = static_cast<double>(in[0].shape.back());
  return {static_cast<double>(in[0].shape.numel()) * std::min(m, n) * 2 / 3,
          static_cast<double>(in[0].bytes() + out[0].bytes())};
}
double Lu::reduction_length(MetaSpan in) const {
  const double n = static_cast<double>(in[0].shape.back());
  return n * n;
}

void Lu::on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const {
  out[0] = in[0];
  const std::int64_t m = in[0].rows, n = in[0].columns;
  out[1] = detail::HostMatrices(in[0], m, 1);
  for (std::int64_t batch = 0; batch < in[0].count; ++batch) {
    double* const a = out[0][batch];
    double* const order = out[1][batch];
    for (std::int64_t i = 0; i < m; ++i) order[i] = static_cast<double>(i);
    for (std::int64_t k = 0; k < std::min(m, n); ++k) {
      std::int64_t pivot = k;
      for (std::int64_t i = k + 1; i < m; ++i)
        if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
      if (pivot != k) {
        std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
        std::swap(order[k], order[pivot]);
      }
      if (a[k * n + k] == 0) continue;  // the column is zero from here on
      for (std::int64_t i = k + 1; i < m; ++i) {
        const double factor = a[i * n + k] /= a[k * n + k];
        for (std::int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      }
    }
  }
}

}  // namespace ferrite::op
