// qr: shape rule, cost, and Householder's reflections on the host.
#include "ferrite/ops/qr.hpp"

#include <algorithm>
#include <cmath>

namespace ferrite::op {

Metas Qr::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_matrices(type_name, "a", in[0]);
  Shape shape = detail::batch_of(in[0].shape);
  const std::int64_t m = in[0].shape[in[0].shape.rank() - 2], n = in[0].shape.back();
  shape.push_back((m + n) * std::min(m, n));
  return {Meta{shape, in[0].dtype}};
}
std::vector<std::int64_t> Qr::part_sizes(MetaSpan in) const {
  const std::int64_t m = in[0].shape[in[0].shape.rank() - 2], n = in[0].shape.back(), k = std::min(m, n);
  return {m * k, k * n};
}
Cost Qr::cost(MetaSpan in, MetaSpan out) const {
  const double m = static_cast<double>(in[0].shape[in[0].shape.rank() - 2]),
               n = static_cast<double>(in[0].shape.back());
  return {4 * static_cast<double>(in[0].shape.numel()) * std::min(m, n),
          static_cast<double>(in[0].bytes() + out[0].bytes())};
}
double Qr::reduction_length(MetaSpan in) const {
  const double m = static_cast<double>(in[0].shape[in[0].shape.rank() - 2]),
               n = static_cast<double>(in[0].shape.back());
  return m * n;
}

namespace {

/// Reflects the columns from `first` on of x [m, n] at the plane across v, which is zero above row k.
void reflect(double* x, std::int64_t m, std::int64_t n, std::int64_t first, const std::vector<double>& v,
             std::int64_t k) {
  for (std::int64_t j = first; j < n; ++j) {
    double dot = 0;
    for (std::int64_t i = k; i < m; ++i) dot += v[static_cast<std::size_t>(i)] * x[i * n + j];
    for (std::int64_t i = k; i < m; ++i) x[i * n + j] -= 2 * dot * v[static_cast<std::size_t>(i)];
  }
}

/// r [m, n] holds A and becomes R; q [m, k] becomes Q.
void factorize(double* r, double* q, std::int64_t m, std::int64_t n) {
  const std::int64_t size = std::min(m, n);
  std::vector<std::vector<double>> planes;
  for (std::int64_t k = 0; k < size; ++k) {
    std::vector<double> v(static_cast<std::size_t>(m), 0.0);
    double norm = 0;
    for (std::int64_t i = k; i < m; ++i)
      norm = std::hypot(norm, v[static_cast<std::size_t>(i)] = r[i * n + k]);
    v[static_cast<std::size_t>(k)] += std::copysign(norm, v[static_cast<std::size_t>(k)]);
    double length = 0;
    for (const double x : v) length = std::hypot(length, x);
    for (double& x : v) x = length > 0 ? x / length : 0;
    reflect(r, m, n, k, v, k);
    planes.push_back(std::move(v));
  }
  for (std::int64_t i = 0; i < size; ++i) q[i * size + i] = 1;
  for (std::int64_t k = size - 1; k >= 0; --k) reflect(q, m, size, 0, planes[static_cast<std::size_t>(k)], k);
}

}  // namespace

void Qr::on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const {
  const std::int64_t m = in[0].rows, n = in[0].columns, k = std::min(m, n);
  out[0] = detail::HostMatrices(in[0], 1, (m + n) * k);
  for (std::int64_t batch = 0; batch < in[0].count; ++batch) {
    std::vector<double> r(in[0][batch], in[0][batch] + m * n);
    double *const q = out[0][batch], *const target = q + m * k;
    factorize(r.data(), q, m, n);
    for (std::int64_t i = 0; i < k; ++i) {
      const bool flip = r[static_cast<std::size_t>(i * n + i)] < 0;
      for (std::int64_t j = i; j < n; ++j)
        target[i * n + j] =
            flip ? -r[static_cast<std::size_t>(i * n + j)] : r[static_cast<std::size_t>(i * n + j)];
      for (std::int64_t row = 0; flip && row < m; ++row) q[row * k + i] = -q[row * k + i];
    }
  }
}

}  // namespace ferrite::op
