// lu: A = P L U with partial pivoting. det and slogdet stand on it.
#pragma once

#include "ferrite/ops/gather.hpp"
#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/sort.hpp"
#include "ferrite/ops/triangular_solve.hpp"

namespace ferrite {
namespace op {

/// Row order[i] of A is row i of L U. L has ones on its diagonal and lies below it, U on it and above.
/// # Shapes: A [..., M, N] -> L and U in one [..., M, N], order [..., M] (i64); f32 or f64.
struct FERRITE_API Lu {
  static constexpr LibraryName type_name = "lu";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{3, 3}, d}}; }
  static void attributes(auto&, auto&&) {}
  void on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    detail::assemble_on_host(b, *this, in, out);
  }
  Saves saves() const { return {.outputs = {0, 1}}; }  // L and U; order
  /// Of the rows in their new order: L^-T (tril(L^T dL, -1) + triu(dU U^T)) U^-T.
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> lu = v.output(0), g = v.grad();
    if (lu.size(-1) != lu.size(-2))
      throw GradientError("[lu] " + to_string(lu.shape()) + ": only square matrices have a gradient");
    const Tensor<B> l = tril(lu, -1), u = triu(lu);
    const Tensor<B> dl = tril(g, -1), du = triu(g);
    const Tensor<B> below = dl_part(l, dl), above = triu(matmul(du, transpose(u, -1, -2)));
    const Tensor<B> right = detail::run_parts("gradient of lu", [&] {
      const Tensor<B> left =
          eval(TriangularSolve{.lower = true, .transposed = true, .unit_diagonal = true}, lu, below + above);
      return eval(TriangularSolve{.lower = false}, lu, transpose(left, -1, -2));
    });
    v.add(0, reorder_back(transpose(right, -1, -2), v.output(1)));
  }
  /// Row order[i] of the result is row i of x.
  template <class B>
  static Tensor<B> reorder_back(const Tensor<B>& x, const Tensor<B>& order) {
    return reorder(x, sort(order).second);
  }
  /// Row i of the result is row order[i] of x.
  template <class B>
  static Tensor<B> reorder(const Tensor<B>& x, const Tensor<B>& order) {
    return gather(x, -2, expand(unsqueeze(order, -1), x.shape()));
  }

 private:
  /// tril(L^T dL, -1) for L = l + 1.
  template <class B>
  static Tensor<B> dl_part(const Tensor<B>& l, const Tensor<B>& dl) {
    return tril(matmul(transpose(l, -1, -2), dl) + dl, -1);
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Lu& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Lu& op, Ins in, Outs out);

/// Row order[i] of the matrix is row i of `lower` times `upper`.
template <class B>
struct LuResult {
  Tensor<B> lower, upper, order;
};

/// LU with partial pivoting. A singular matrix has an LU too: a zero on the diagonal of `upper`. Gradients,
/// and those of det and slogdet, need square matrices that are not singular; others are errors. # Shapes:
/// [..., M, N] -> lower [..., M, K], upper [..., K, N], order [..., M] (i64), K = min(M, N)
template <class B>
LuResult<B> lu(const Tensor<B>& a) {
  const Tensors<B> out = eval_all(op::Lu{}, a);
  const std::int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Tensor<B> below = slice(tril(out[0], -1), -1, 0, k);
  const Tensor<B> on_diagonal = unsqueeze(arange(a.backend(), m), -1) == arange(a.backend(), k);
  return {where(on_diagonal, 1, below), slice(triu(out[0]), -2, 0, k), out[1]};
}

}  // namespace ferrite
