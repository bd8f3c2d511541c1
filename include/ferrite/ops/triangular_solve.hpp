// triangular_solve: X with A X = B for triangular matrices A.
#pragma once

#include "ferrite/core/config.hpp"
#include "ferrite/ops/host_matrices.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ferrite/ops/triangle.hpp"

namespace ferrite {

/// Which triangle of a matrix counts; the other is not read.
enum class Side : bool { lower, upper };

/// How triangular_solve reads its matrices.
struct TriangularConfig {
  Side side = Side::lower;
  bool transposed = false;     // solves A^T X = B
  bool unit_diagonal = false;  // the diagonal counts as ones and is not read

  TriangularConfig with_side(Side value) const { return detail::with(*this, &TriangularConfig::side, value); }
  TriangularConfig with_transposed(bool value = true) const {
    return detail::with(*this, &TriangularConfig::transposed, value);
  }
  TriangularConfig with_unit_diagonal(bool value = true) const {
    return detail::with(*this, &TriangularConfig::unit_diagonal, value);
  }
};

namespace op {

/// # Shapes: A [..., N, N], B [..., N, K] -> X [..., N, K], with equal batch axes; f32 or f64.
struct FERRITE_API TriangularSolve {
  static constexpr LibraryName type_name = "triangular_solve";
  bool lower = true;
  bool transposed = false;
  bool unit_diagonal = false;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{3, 3}, d}, {{3, 2}, d}}; }
  static void attributes(auto& self, auto&& visit) {
    visit("lower", self.lower);
    visit("transposed", self.transposed);
    visit("unit_diagonal", self.unit_diagonal);
  }
  void on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    detail::assemble_on_host(b, *this, in, out);
  }
  Saves saves() const { return {.inputs = {0}, .outputs = {0}}; }  // A; X
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> db = eval(TriangularSolve{lower, !transposed, unit_diagonal}, v.input(0), v.grad());
    v.add(1, db);
    if (!v.needs(0)) return;
    const Tensor<B> x = v.output(0);
    const Tensor<B> da = transposed ? matmul(x, transpose(db, -1, -2)) : matmul(db, transpose(x, -1, -2));
    const std::int64_t shift = unit_diagonal ? 1 : 0;
    v.add(0, -(lower ? tril(da, -shift) : triu(da, shift)));
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::TriangularSolve& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::TriangularSolve& op, Ins in, Outs out);

/// X with A X = B. A zero on the diagonal is a ValueError that names the matrix.
/// # Shapes: a [..., N, N], b [..., N, K] -> [..., N, K]; batch axes broadcast
template <class B>
Tensor<B> triangular_solve(const Tensor<B>& a, const Tensor<B>& b, const TriangularConfig& config = {}) {
  const auto [left, right] = detail::broadcast_matrices("triangular_solve", a, b);
  return eval(op::TriangularSolve{config.side == Side::lower, config.transposed, config.unit_diagonal}, left,
              right);
}

}  // namespace ferrite
