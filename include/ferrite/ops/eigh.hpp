// eigh: eigenvalues and eigenvectors of symmetric matrices.
#pragma once

#include "ferrite/ops/host_matrices.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ferrite/ops/solve.hpp"

namespace ferrite {
namespace op {

/// One output, so that both parts have a gradient: row 0 holds the eigenvalues, ascending, and the rows below
/// hold the eigenvectors as columns. The sign of an eigenvector is such that its largest element is positive.
/// # Shapes: A [..., N, N] -> [..., N + 1, N]; f32 or f64. Only the lower triangle of A is read.
struct FERRITE_API Eigh {
  static constexpr LibraryName type_name = "eigh";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  /// Of the values and of the vectors, for comparisons: each part is judged by its own magnitude.
  std::vector<std::int64_t> part_sizes(MetaSpan in) const;
  Metas example(DType d) const { return {{{3, 3}, d}}; }
  static void attributes(auto&, auto&&) {}
  void on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    detail::assemble_on_host(b, *this, in, out);
  }
  Saves saves() const { return {.outputs = {0}}; }
  /// V (diag(dw) + (V^T dV) / E) V^T with E[i, j] = w[j] - w[i], and its symmetric part. Quotients by zero
  /// count as 0: at equal eigenvalues that is right for functions of the values, not of the vectors.
  template <class B>
  void vjp(Vjp<B>& v) const {
    const auto [w, vectors] = parts(v.output(0));
    const auto [dw, dvectors] = parts(v.grad());
    const Tensor<B> gaps = unsqueeze(w, -2) - unsqueeze(w, -1);
    const Tensor<B> turned = matmul(transpose(vectors, -1, -2), dvectors);
    const Tensor<B> inner = where(gaps == 0, 0, turned / where(gaps == 0, 1, gaps)) + on_diagonal(dw);
    const Tensor<B> da = matmul(matmul(vectors, inner), transpose(vectors, -1, -2));
    v.add(0, 0.5 * (da + transpose(da, -1, -2)));
  }
  /// Eigenvalues [..., N] and eigenvectors [..., N, N] of an output.
  template <class B>
  static std::pair<Tensor<B>, Tensor<B>> parts(const Tensor<B>& packed) {
    return {squeeze(slice(packed, -2, 0, 1), {-2}), slice(packed, -2, 1, packed.size(-2))};
  }

 private:
  template <class B>
  static Tensor<B> on_diagonal(const Tensor<B>& x) {
    return unsqueeze(x, -1) * eye(x.backend(), x.size(-1), x.dtype());
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Eigh& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Eigh& op, Ins in, Outs out);

template <class B>
struct EighResult {
  Tensor<B> values, vectors;
};

/// A = vectors diag(values) vectors^T for symmetric matrices, of which only the lower triangle is read.
/// Values ascend. The largest element of each vector is positive (of several that differ by less than a
/// thousandth, the first), so that backends agree.
/// # Shapes: [..., N, N] -> values [..., N], vectors [..., N, N], of which column i belongs to value i
template <class B>
EighResult<B> eigh(const Tensor<B>& a) {
  const auto [values, vectors] = op::Eigh::parts(eval(op::Eigh{}, a));
  return {values, vectors};
}

}  // namespace ferrite
