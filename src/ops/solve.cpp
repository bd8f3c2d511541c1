// solve: shape rule, cost, and the definition on the host.
#include "ferrite/ops/solve.hpp"

#include <algorithm>

#include "ops/solution_rules.hpp"

namespace ferrite::op {

Metas SolveFactored::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 4, 4);
  detail::check_square(type_name, "a", in[0]);
  const Metas factors = Lu{}.infer(in.first(1));
  detail::check_shape(type_name, "the factors", in[1].shape, factors[0].shape);
  detail::check_dtype(type_name, "the factors", in[1].dtype, in[0].dtype);
  detail::check_shape(type_name, "the order", in[2].shape, factors[1].shape);
  detail::check_dtype(type_name, "the order", in[2].dtype, DType::i64);
  return {infer_solution(type_name, in[0], in[3])};
}

Metas Solve::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  const Meta solution = infer_solution(type_name, in[0], in[1]);
  const Metas factors = Lu{}.infer(in.first(1));
  return {solution, factors[0], factors[1]};
}
Cost Solve::cost(MetaSpan in, MetaSpan out) const {
  const Cost factors = Lu{}.cost(in.first(1), out.subspan(1));
  return {
      factors.flops + 2 * static_cast<double>(out[0].shape.numel()) * static_cast<double>(in[0].shape.back()),
      factors.bytes + 2 * static_cast<double>(out[0].bytes())};
}
double Solve::reduction_length(MetaSpan in) const {
  const double n = static_cast<double>(in[0].shape.back());
  return n * n;
}

namespace {
detail::HostMatrices transposed(const detail::HostMatrices& x) {
  detail::HostMatrices result(x, x.columns, x.rows);
  for (std::int64_t batch = 0; batch < x.count; ++batch)
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t j = 0; j < x.columns; ++j)
        result[batch][j * x.rows + i] = x[batch][i * x.columns + j];
  return result;
}
}  // namespace

void Solve::on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const {
  const detail::HostMatrices& b = in[1];
  const std::int64_t n = b.rows, k = b.columns;
  const detail::HostMatrices columns[] = {transposed(in[0])};
  Lu{}.on_host(columns, out.subspan(1));
  out[1] = transposed(out[1]);
  for (std::int64_t batch = 0; batch < b.count; ++batch)
    for (std::int64_t i = 0; i < n; ++i)
      if (out[1][batch][i * n + i] == 0) detail::throw_bad_matrix(type_name, b.batch, batch, "singular");
  detail::HostMatrices operands[] = {out[1], b}, middle[1];
  TriangularSolve{.lower = true}.on_host(operands, middle);
  operands[1] = std::move(middle[0]);
  TriangularSolve{.lower = false, .transposed = false, .unit_diagonal = true}.on_host(operands, middle);
  out[0] = detail::HostMatrices(b, n, k);
  for (std::int64_t batch = 0; batch < b.count; ++batch)
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(middle[0][batch] + i * k, k,
                  out[0][batch] + static_cast<std::int64_t>(out[2][batch][i]) * k);
}

}  // namespace ferrite::op
