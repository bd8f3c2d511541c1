// cholesky: shape rule, cost, and the definition on the host.
#include "ferrite/ops/cholesky.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ferrite::op {

Metas Cholesky::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_square(type_name, "a", in[0]);
  return {in[0]};
}
Cost Cholesky::cost(MetaSpan in, MetaSpan out) const {
  const double n = static_cast<double>(in[0].shape.back());
  return {static_cast<double>(in[0].shape.numel()) * n / 3,
          static_cast<double>(in[0].bytes() + out[0].bytes())};
}
double Cholesky::reduction_length(MetaSpan in) const {
  const double n = static_cast<double>(in[0].shape.back());
  return n * n;
}

void Cholesky::on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const {
  const detail::HostMatrices& a = in[0];
  const std::int64_t n = a.rows;
  out[0] = detail::HostMatrices(a, n, n);
  for (std::int64_t batch = 0; batch < a.count; ++batch) {
    const double* const m = a[batch];
    double* const l = out[0][batch];
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double sum = m[i * n + j];
        for (std::int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
        if (i > j) {
          l[i * n + j] = sum / l[j * n + j];
        } else if (sum > 0) {
          l[i * n + i] = std::sqrt(sum);
        } else {
          detail::throw_bad_matrix(type_name, a.batch, batch,
                                   fmt::format("not positive definite: its leading {} rows are not", i + 1));
        }
      }
    }
  }
}

}  // namespace ferrite::op
