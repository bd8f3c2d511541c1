// qr: A = Q R with orthonormal columns Q and an upper triangle R.
#pragma once

#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/triangular_solve.hpp"

namespace ferrite {
namespace op {

/// One output, so that both parts have a gradient: the elements of Q, then those of R.
/// # Shapes: A [..., M, N] -> [..., M K + K N], K = min(M, N); f32 or f64
struct FERRITE_API Qr {
  static constexpr LibraryName type_name = "qr";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  /// Of Q and of R, for comparisons: each part is judged by its own magnitude.
  std::vector<std::int64_t> part_sizes(MetaSpan in) const;
  Metas example(DType d) const { return {{{3, 2}, d}}; }
  static void attributes(auto&, auto&&) {}
  void on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    detail::assemble_on_host(b, *this, in, out);
  }
  Saves saves() const { return {.inputs = {0}, .outputs = {0}}; }
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Shape& shape = v.input_meta(0).shape;
    const std::int64_t m = shape[shape.rank() - 2], n = shape.back();
    const auto [q, r] = parts(v.output(0), m, n);
    auto [dq, dr] = parts(v.grad(), m, n);
    if (m >= n) return v.add(0, tall(q, r, dq, dr));
    // A wide matrix is [X Y] with X square: Q R1 = X, and Y = Q R2.
    const Tensor<B> y = slice(v.input(0), -1, m, n), dr2 = slice(dr, -1, m, n);
    const Tensor<B> dx =
        tall(q, slice(r, -1, 0, m), dq + matmul(y, transpose(dr2, -1, -2)), slice(dr, -1, 0, m));
    v.add(0, cat<B>({dx, matmul(q, dr2)}, -1));
  }
  /// Q [..., M, K] and R [..., K, N] of an output.
  template <class B>
  static std::pair<Tensor<B>, Tensor<B>> parts(const Tensor<B>& packed, std::int64_t m, std::int64_t n) {
    const std::int64_t k = std::min(m, n);
    return {detail::matrix_part(packed, 0, m, k), detail::matrix_part(packed, m * k, k, n)};
  }

 private:
  /// (dQ + Q S) R^-T, where S is M = R dR^T - dQ^T Q with its lower triangle copied above the diagonal.
  template <class B>
  static Tensor<B> tall(const Tensor<B>& q, const Tensor<B>& r, const Tensor<B>& dq, const Tensor<B>& dr) {
    const Tensor<B> m = matmul(r, transpose(dr, -1, -2)) - matmul(transpose(dq, -1, -2), q);
    const Tensor<B> s = tril(m) + transpose(tril(m, -1), -1, -2);
    const Tensor<B> right = transpose(dq + matmul(q, s), -1, -2);
    return detail::run_parts(
        "gradient of qr", [&] { return transpose(eval(TriangularSolve{.lower = false}, r, right), -1, -2); });
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Qr& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Qr& op, Ins in, Outs out);

template <class B>
struct QrResult {
  Tensor<B> q, r;
};

/// A = q r, reduced: the columns of q are orthonormal, r is an upper triangle without negative numbers on its
/// diagonal, so that backends agree. Gradients need full rank: another matrix is a ValueError.
/// # Shapes: [..., M, N] -> q [..., M, K], r [..., K, N], K = min(M, N)
template <class B>
QrResult<B> qr(const Tensor<B>& a) {
  detail::check_matrices("qr", "a", a.meta());
  const auto [q, r] = op::Qr::parts(eval(op::Qr{}, a), a.size(-2), a.size(-1));
  return {q, r};
}

}  // namespace ferrite
