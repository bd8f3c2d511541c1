// matmul: products of matrices, batched with broadcast batch axes, any strides. f16 and bf16 accumulate in
// f32, integers in i64.
#pragma once

#include <algorithm>

#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// # Shapes: lhs [..., M, K], rhs [..., K, N] -> [..., M, N]; both at least 2-d, batch axes broadcast.
struct FERRITE_API Matmul {
  static constexpr LibraryName type_name = "matmul";
  static constexpr Positions lowered = {0, 1};
  std::optional<DType> at_least = {};  // the result's dtype: bf16 x bf16 -> f32

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, {{3, 4}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("at_least", self.at_least); }
  Saves saves() const { return {.inputs = {0, 1}}; }
  template <class B>
  void vjp(Vjp<B>& v) const {
    if (v.needs(0)) v.into(0, Matmul{v.input_meta(0).dtype}, v.grad(), transpose(v.input(1), -1, -2));
    if (v.needs(1)) v.into(1, Matmul{v.input_meta(1).dtype}, transpose(v.input(0), -1, -2), v.grad());
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Matmul& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Matmul& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

/// Like NumPy's matmul: a 1-d operand is a row on the left, a column on the right, and its axis is dropped
/// from the result. A stack of matrices times one matrix runs as a single product.
template <class B>
Tensor<B> matmul(const Tensor<B>& lhs, const Tensor<B>& rhs) {
  if (lhs.rank() == 0 || rhs.rank() == 0)
    throw ShapeError("[matmul] lhs " + to_string(lhs.shape()) + " and rhs " + to_string(rhs.shape()) +
                     ": operands must have at least one axis; use * for scalars");
  const Tensor<B> a = lhs.rank() == 1 ? unsqueeze(lhs, 0) : lhs;
  const Tensor<B> b = rhs.rank() == 1 ? unsqueeze(rhs, 1) : rhs;
  Tensor<B> y;
  if (a.rank() > 2 && b.rank() == 2 && a.size(-1) == b.size(0)) {
    Shape shape = a.shape();
    shape[a.rank() - 1] = b.size(1);
    const std::int64_t rows = a.numel() / std::max<std::int64_t>(a.size(-1), 1);
    if (a.size(-1) > 0) y = reshape(eval(op::Matmul{}, reshape(a, {rows, a.size(-1)}), b), shape);
  }
  if (!y.defined()) y = eval(op::Matmul{}, a, b);
  if (rhs.rank() == 1) y = squeeze(y, {-1});
  if (lhs.rank() == 1) y = squeeze(y, {rhs.rank() == 1 ? -1 : -2});
  return y;
}

}  // namespace ferrite
