// cholesky: the lower triangle L with A = L L^T.
#pragma once

#include "ferrite/ops/triangular_solve.hpp"

namespace ferrite {
namespace op {

/// # Shapes: A [..., N, N] -> L [..., N, N]; f32 or f64. Only the lower triangle of A is read.
struct FERRITE_API Cholesky {
  static constexpr LibraryName type_name = "cholesky";

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
  Saves saves() const { return {.outputs = {0}}; }  // L
  /// With P the lower triangle of L^T dL, its diagonal halved: dA is the symmetric part of L^-T P L^-1.
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> l = v.output(0);
    const auto below = [&](const Tensor<B>& x) {  // L^-T x
      return eval(TriangularSolve{.lower = true, .transposed = true}, l, x);
    };
    const Tensor<B> product = matmul(transpose(l, -1, -2), v.grad());
    const Tensor<B> p = 0.5 * (tril(product) + tril(product, -1));
    const Tensor<B> s = below(transpose(below(p), -1, -2));
    v.add(0, 0.5 * (s + transpose(s, -1, -2)));
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Cholesky& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Cholesky& op, Ins in, Outs out);

/// The lower triangle L with A = L L^T, for symmetric positive-definite matrices A, of which only the lower
/// triangle is read. Another matrix is a ValueError that says which one of the batch.
/// # Shapes: [..., N, N] -> [..., N, N]
template <class B>
Tensor<B> cholesky(const Tensor<B>& a) {
  return eval(op::Cholesky{}, a);
}

}  // namespace ferrite
