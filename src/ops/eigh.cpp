// eigh: shape rule, cost, and Jacobi's rotations on the host.
#include "ferrite/ops/eigh.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/finite_matrices.hpp"

namespace ferrite::op {

Metas Eigh::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_square(type_name, "a", in[0]);
  const std::int64_t n = in[0].shape.back();
  return {Meta{detail::with_matrix(in[0].shape, n + 1, n), in[0].dtype}};
}
std::vector<std::int64_t> Eigh::part_sizes(MetaSpan in) const {
  const std::int64_t n = in[0].shape.back();
  return {n, n * n};
}
Cost Eigh::cost(MetaSpan in, MetaSpan out) const {
  const double n = static_cast<double>(in[0].shape.back());
  return {9 * static_cast<double>(in[0].shape.numel()) * n,
          static_cast<double>(in[0].bytes() + out[0].bytes())};
}
double Eigh::reduction_length(MetaSpan in) const {
  const double n = static_cast<double>(in[0].shape.back());
  return n * n;
}

namespace {

/// Rotates rows and columns p and q of the symmetric a so that a[p, q] becomes 0, and the columns of v with
/// them.
void rotate(double* a, double* v, std::int64_t n, std::int64_t p, std::int64_t q) {
  const double apq = a[p * n + q];
  if (apq == 0) return;
  const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
  const double t = std::copysign(1 / (std::abs(theta) + std::hypot(theta, 1.0)), theta);
  const double c = 1 / std::hypot(t, 1.0), s = t * c;
  const auto turn = [&](double& x, double& y) {
    const double old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  };
  for (std::int64_t k = 0; k < n; ++k) turn(a[k * n + p], a[k * n + q]);
  for (std::int64_t k = 0; k < n; ++k) turn(a[p * n + k], a[q * n + k]);
  for (std::int64_t k = 0; k < n; ++k) turn(v[k * n + p], v[k * n + q]);
}

/// Sweeps until what is off the diagonal is rounding.
void diagonalize(double* a, double* v, std::int64_t n) {
  constexpr int most_sweeps = 60;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double off = 0, all = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        all += a[i * n + j] * a[i * n + j];
        if (i != j) off += a[i * n + j] * a[i * n + j];
      }
    }
    const double eps = std::numeric_limits<double>::epsilon();
    if (!(off > eps * eps * all)) return;
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t q = p + 1; q < n; ++q) rotate(a, v, n, p, q);
  }
}

}  // namespace

void Eigh::on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const {
  check_finite(type_name, in[0], Part::lower_triangle);
  const std::int64_t n = in[0].rows;
  out[0] = detail::HostMatrices(in[0], n + 1, n);
  std::vector<double> a, v;
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::int64_t batch = 0; batch < in[0].count; ++batch) {
    a.assign(in[0][batch], in[0][batch] + n * n);
    v.assign(static_cast<std::size_t>(n * n), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      v[static_cast<std::size_t>(i * n + i)] = 1;
      for (std::int64_t j = i + 1; j < n; ++j)
        a[static_cast<std::size_t>(i * n + j)] = a[static_cast<std::size_t>(j * n + i)];
    }
    const double scale = detail::power_of_two_above(a.data(), n * n);
    for (double& x : a) x /= scale;
    diagonalize(a.data(), v.data(), n);
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](std::int64_t i) { return a[static_cast<std::size_t>(i * n + i)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return value(i) < value(j); });
    double* const result = out[0][batch];
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t from = order[static_cast<std::size_t>(i)];
      result[i] = value(from) * scale;
      for (std::int64_t k = 0; k < n; ++k)
        result[(k + 1) * n + i] = v[static_cast<std::size_t>(k * n + from)];
    }
    detail::make_largest_positive(result + n, n, n);
  }
}

}  // namespace ferrite::op
