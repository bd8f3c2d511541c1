// triangular_solve: shape rule, cost, and substitution on the host.
#include "ferrite/ops/triangular_solve.hpp"

#include "ops/solution_rules.hpp"

namespace ferrite::op {

Metas TriangularSolve::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  return {infer_solution(type_name, in[0], in[1])};
}

Cost TriangularSolve::cost(MetaSpan in, MetaSpan out) const {
  return {static_cast<double>(out[0].shape.numel()) * static_cast<double>(in[0].shape.back()),
          static_cast<double>(in[0].bytes()) / 2 + 2 * static_cast<double>(out[0].bytes())};
}
double TriangularSolve::reduction_length(MetaSpan in) const {
  const double n = static_cast<double>(in[0].shape.back());
  return n * n;
}

void TriangularSolve::on_host(std::span<const detail::HostMatrices> in,
                              std::span<detail::HostMatrices> out) const {
  const detail::HostMatrices& a = in[0];
  out[0] = in[1];
  const std::int64_t n = a.rows, k = out[0].columns;
  const bool forward = lower != transposed;  // the first unknown is the first row's
  for (std::int64_t batch = 0; batch < a.count; ++batch) {
    const double* const m = a[batch];
    double* const x = out[0][batch];
    const auto at = [&](std::int64_t i, std::int64_t j) { return transposed ? m[j * n + i] : m[i * n + j]; };
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t i = forward ? step : n - 1 - step;
      for (std::int64_t done = 0; done < step; ++done) {
        const std::int64_t j = forward ? done : n - 1 - done;
        for (std::int64_t c = 0; c < k; ++c) x[i * k + c] -= at(i, j) * x[j * k + c];
      }
      if (unit_diagonal) continue;
      if (at(i, i) == 0)
        detail::throw_bad_matrix(type_name, a.batch, batch, "singular: its diagonal has a zero");
      for (std::int64_t c = 0; c < k; ++c) x[i * k + c] /= at(i, i);
    }
  }
}

}  // namespace ferrite::op
