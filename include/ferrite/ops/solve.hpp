// solve: X with A X = B. inverse, det and slogdet, by the same elimination.
#pragma once

#include "ferrite/ops/lu.hpp"
#include "ferrite/ops/scan.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {
namespace op {

/// X with A X = B, or A^T X = B, by the factors of A that Solve gave. A itself is not read: it is there for
/// the gradient.
/// # Shapes: A [..., N, N], factors [..., N, N], order [..., N] (i64), B [..., N, K] -> X [..., N, K]
struct FERRITE_API SolveFactored {
  static constexpr LibraryName type_name = "solve_factored";
  bool transposed = false;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) const { return {{{3, 3}, d}, {{3, 3}, d}, {{3}, DType::i64}, {{3, 1}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("transposed", self.transposed); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>&factors = in[1], &order = in[2];
    const auto below = [&](const Tensor<B>& x) {
      return eval(TriangularSolve{.lower = true, .transposed = transposed}, factors, x);
    };
    const auto above = [&](const Tensor<B>& x) {
      return eval(TriangularSolve{.lower = false, .transposed = transposed, .unit_diagonal = true}, factors,
                  x);
    };
    if (transposed) return {below(above(Lu::reorder(in[3], order)))};
    return {Lu::reorder_back(above(below(in[3])), order)};
  }
  Saves saves() const { return {.inputs = {0, 1, 2}, .outputs = {0}}; }
  /// dB solves the transposed system, and dA = -dB X^T, or its transpose.
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> db = eval(SolveFactored{!transposed}, v.input(0), v.input(1), v.input(2), v.grad());
    v.add(3, db);
    if (!v.needs(0)) return;
    const Tensor<B> x = v.output(0);
    v.add(0, -(transposed ? matmul(x, transpose(db, -1, -2)) : matmul(db, transpose(x, -1, -2))));
  }
};

/// The other outputs are for the gradient: the LU of A^T, which is what LAPACK and cuSOLVER make of row-major
/// matrices, without a transposed copy. So column order[i] of A is column i of L U, where U has ones on its
/// diagonal and lies above it in `factors`, and L on it and below.
/// # Shapes: A [..., N, N], B [..., N, K] -> X [..., N, K], factors [..., N, N], order [..., N] (i64)
struct FERRITE_API Solve {
  static constexpr LibraryName type_name = "solve";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{3, 3}, d}, {{3, 2}, d}}; }
  static void attributes(auto&, auto&&) {}
  void on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    detail::assemble_on_host(b, *this, in, out);
  }
  Saves saves() const { return {.inputs = {0}, .outputs = {0, 1, 2}}; }
  /// dB solves A^T dB = dX, and dA = -dB X^T.
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> db =
        eval(SolveFactored{.transposed = true}, v.input(0), v.output(1), v.output(2), v.grad());
    v.add(1, db);
    if (v.needs(0)) v.add(0, -matmul(db, transpose(v.output(0), -1, -2)));
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Solve& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Solve& op, Ins in, Outs out);

/// X with A X = B. A singular matrix is a ValueError that says which one of the batch.
/// # Shapes: a [..., N, N], b [..., N, K] -> [..., N, K], batch axes broadcast; or b [N] -> [..., N]
template <class B>
Tensor<B> solve(const Tensor<B>& a, const Tensor<B>& b) {
  if (b.rank() == 1) {
    detail::check_square("solve", "a", a.meta());
    detail::check_shape("solve", "b", b.shape(), {a.size(-1)});
    return squeeze(solve(a, unsqueeze(b, -1)), {-1});
  }
  const auto [left, right] = detail::broadcast_matrices("solve", a, b);
  return eval_all(op::Solve{}, left, right)[0];
}

/// A^-1. To multiply by it, solve is faster and more accurate.
/// # Shapes: [..., N, N] -> [..., N, N]
template <class B>
Tensor<B> inverse(const Tensor<B>& a) {
  detail::check_square("inverse", "a", a.meta());
  return detail::run_parts("inverse", [&] { return solve(a, eye(a.backend(), a.size(-1), a.dtype())); });
}

namespace detail {
/// [..., N, N] -> [..., N]
template <class B>
Tensor<B> diagonal_of(const Tensor<B>& a) {
  Shape shape = a.shape();
  shape[a.rank() - 1] = 1;
  const Tensor<B> column = expand(unsqueeze(arange(a.backend(), a.size(-1)), -1), shape);
  return squeeze(gather(a, -1, column), {-1});
}
/// 1 or -1: whether the order is an even or an odd permutation, by its pairs that are in the wrong order.
template <class B>
Tensor<B> sign_of(const Tensor<B>& order, DType dtype) {
  const Tensor<B> later = triu(cast(unsqueeze(order, -1) > unsqueeze(order, -2), DType::i64), 1);
  return cast(1 - 2 * remainder(sum(later, {-2, -1}), 2), dtype);
}
}  // namespace detail

/// # Shapes: [..., N, N] -> [...]
template <class B>
Tensor<B> det(const Tensor<B>& a) {
  detail::check_square("det", "a", a.meta());
  const Tensors<B> out = eval_all(op::Lu{}, a);
  return prod(detail::diagonal_of(out[0]), {-1}) * detail::sign_of(out[1], a.dtype());
}

/// det = sign exp(logarithm), where det itself may leave the range. A singular matrix has sign 0 and
/// logarithm -infinity.
template <class B>
struct SlogdetResult {
  Tensor<B> sign, logarithm;
};
/// # Shapes: [..., N, N] -> sign [...], logarithm [...]
template <class B>
SlogdetResult<B> slogdet(const Tensor<B>& a) {
  detail::check_square("slogdet", "a", a.meta());
  const Tensors<B> out = eval_all(op::Lu{}, a);
  const Tensor<B> diagonal = detail::diagonal_of(out[0]);
  return {prod(sign(diagonal), {-1}) * detail::sign_of(out[1], a.dtype()), sum(log(abs(diagonal)), {-1})};
}

}  // namespace ferrite
