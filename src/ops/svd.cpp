// svd: shape rule, cost, and one-sided Jacobi rotations on the host.
#include "ferrite/ops/svd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/finite_matrices.hpp"

namespace ferrite::op {

Metas Svd::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_matrices(type_name, "a", in[0]);
  Shape shape = detail::batch_of(in[0].shape);
  const std::int64_t m = in[0].shape[in[0].shape.rank() - 2], n = in[0].shape.back();
  shape.push_back((m + 1 + n) * std::min(m, n));
  return {Meta{shape, in[0].dtype}};
}
std::vector<std::int64_t> Svd::part_sizes(MetaSpan in) const {
  const std::int64_t m = in[0].shape[in[0].shape.rank() - 2], n = in[0].shape.back(), k = std::min(m, n);
  return {m * k, k, k * n};
}
Cost Svd::cost(MetaSpan in, MetaSpan out) const {
  const double m = static_cast<double>(in[0].shape[in[0].shape.rank() - 2]),
               n = static_cast<double>(in[0].shape.back());
  return {12 * static_cast<double>(in[0].shape.numel()) * std::min(m, n),
          static_cast<double>(in[0].bytes() + out[0].bytes())};
}
double Svd::reduction_length(MetaSpan in) const {
  const double m = static_cast<double>(in[0].shape[in[0].shape.rank() - 2]),
               n = static_cast<double>(in[0].shape.back());
  return m * n;
}

namespace {

using Columns = std::vector<std::vector<double>>;

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

void turn(std::vector<double>& x, std::vector<double>& y, double c, double s) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double old = x[i];
    x[i] = c * old - s * y[i];
    y[i] = s * old + c * y[i];
  }
}

/// Rotates pairs of columns until all are orthogonal; `v` collects the rotations.
void orthogonalize(Columns& a, Columns& v) {
  constexpr int most_sweeps = 60;
  const double eps = std::numeric_limits<double>::epsilon();
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool rotated = false;
    for (std::size_t p = 0; p < a.size(); ++p) {
      for (std::size_t q = p + 1; q < a.size(); ++q) {
        const double alpha = dot(a[p], a[p]), beta = dot(a[q], a[q]), gamma = dot(a[p], a[q]);
        if (!(std::abs(gamma) > eps * std::sqrt(alpha) * std::sqrt(beta))) continue;
        rotated = true;
        const double zeta = (beta - alpha) / (2 * gamma);
        const double t = std::copysign(1 / (std::abs(zeta) + std::hypot(zeta, 1.0)), zeta);
        const double c = 1 / std::hypot(t, 1.0), s = t * c;
        turn(a[p], a[q], c, s);
        turn(v[p], v[q], c, s);
      }
    }
    if (!rotated) return;
  }
}

/// Columns of norm 0 become unit columns that are orthogonal to all others.
void complete(Columns& u, const std::vector<bool>& empty) {
  for (std::size_t j = 0; j < u.size(); ++j) {
    if (!empty[j]) continue;
    for (std::size_t axis = 0; axis < u[j].size(); ++axis) {
      std::vector<double> x(u[j].size(), 0.0);
      x[axis] = 1;
      for (int pass = 0; pass < 2; ++pass)
        for (std::size_t k = 0; k < u.size(); ++k)
          if (k < j || !empty[k]) {
            const double part = dot(x, u[k]);
            for (std::size_t i = 0; i < x.size(); ++i) x[i] -= part * u[k][i];
          }
      const double length = std::sqrt(dot(x, x));
      if (length < 0.1 / std::sqrt(static_cast<double>(x.size()))) continue;
      for (std::size_t i = 0; i < x.size(); ++i) u[j][i] = x[i] / length;
      break;
    }
  }
}

}  // namespace

void Svd::on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const {
  check_finite(type_name, in[0], Part::whole);
  const std::int64_t m = in[0].rows, n = in[0].columns, k = std::min(m, n), tall = std::max(m, n);
  out[0] = detail::HostMatrices(in[0], 1, (m + 1 + n) * k);
  for (std::int64_t batch = 0; batch < in[0].count; ++batch) {
    // A wide matrix is done as its transpose, with U and V exchanged.
    const double* const a = in[0][batch];
    const double scale = detail::power_of_two_above(a, m * n);
    Columns left(static_cast<std::size_t>(k)), right(static_cast<std::size_t>(k));
    for (std::int64_t j = 0; j < k; ++j) {
      auto& column = left[static_cast<std::size_t>(j)];
      for (std::int64_t i = 0; i < tall; ++i)
        column.push_back((m >= n ? a[i * n + j] : a[j * n + i]) / scale);
      right[static_cast<std::size_t>(j)].assign(static_cast<std::size_t>(k), 0.0);
      right[static_cast<std::size_t>(j)][static_cast<std::size_t>(j)] = 1;
    }
    orthogonalize(left, right);
    std::vector<double> s;
    for (const auto& column : left) s.push_back(std::sqrt(dot(column, column)));
    std::vector<std::size_t> order(static_cast<std::size_t>(k));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return s[i] > s[j]; });
    Columns u, v;
    std::vector<bool> empty;
    double *const us = out[0][batch], *const ss = us + m * k, *const vts = ss + k;
    for (std::size_t j = 0; j < order.size(); ++j) {
      const double value = s[order[j]];
      ss[j] = value * scale;
      empty.push_back(value == 0);
      u.push_back(left[order[j]]);
      v.push_back(right[order[j]]);
      for (double& x : u.back()) x = value > 0 ? x / value : 0;
    }
    complete(u, empty);
    if (m < n) std::swap(u, v);
    for (std::int64_t j = 0; j < k; ++j) {
      for (std::int64_t i = 0; i < m; ++i)
        us[i * k + j] = u[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)];
      for (std::int64_t i = 0; i < n; ++i)
        vts[j * n + i] = v[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)];
    }
    detail::make_largest_positive(us, m, k, [&](std::int64_t j) {
      for (std::int64_t i = 0; i < n; ++i) vts[j * n + i] = -vts[j * n + i];
    });
  }
}

}  // namespace ferrite::op
