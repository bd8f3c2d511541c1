// cross_attention: attention whose queries, keys and values are three tensors as projections give them, with
// the heads of a position side by side. Nothing is transposed: kernels read and write the heads where they
// lie.
#pragma once

#include "ferrite/ops/attention.hpp"

namespace ferrite {
namespace op {

/// As Attention, but for the order of the axes.
/// # Shapes: q [N, T, H, D], k [N, S, K, D], v [N, S, K, E], mask (optional) broadcastable to [N, H, T, S]
/// -> o [N, T, H, E], lse [N, H, T]
struct FERRITE_API CrossAttention {
  static constexpr LibraryName type_name = "cross_attention";
  static constexpr Positions lowered = {0, 1, 2};
  bool causal = false;
  double scale = 1;
  std::int64_t window = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(3, {1, 3, 2, 4}, d); }
  static void attributes(auto& self, auto&& visit) {
    visit("causal", self.causal);
    visit("scale", self.scale);
    visit("window", self.window);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    SmallVector<Tensor<B>, 4> parts;
    for (std::size_t i = 0; i < in.size(); ++i) parts.push_back(i < 3 ? transpose(in[i], 1, 2) : in[i]);
    // Not attention as an op: of its results only the first would carry a gradient.
    const Tensors<B> results =
        Attention{causal, scale, window}.compose(b, TensorSpan<B>(parts.data(), parts.size()));
    return {transpose(results[0], 1, 2), results[1]};
  }
  Saves saves() const { return {.inputs = {0, 1, 2, 3}, .outputs = {0, 1}}; }  // q, k, v, mask; o, lse
  /// As Attention::has_vjp.
  bool has_vjp(Positions needed) const { return !needed.contains(3); }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// Inputs (do, q, k, v, o, lse[, mask]) -> dq, dk, dv.
struct FERRITE_API CrossAttentionBackward {
  static constexpr LibraryName type_name = "cross_attention_backward";
  static constexpr Positions lowered = {0, 1, 2, 3, 4};
  bool causal = false;
  double scale = 1;
  std::int64_t window = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const {
    Metas in = detail::alike(5, {1, 3, 2, 4}, d);
    in.push_back(detail::statistics({1, 2, 3}, d));
    return in;
  }
  static void attributes(auto& self, auto&& visit) {
    visit("causal", self.causal);
    visit("scale", self.scale);
    visit("window", self.window);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    SmallVector<Tensor<B>, 7> parts;
    for (std::size_t i = 0; i < in.size(); ++i) parts.push_back(i < 5 ? transpose(in[i], 1, 2) : in[i]);
    const Tensors<B> gradients =
        AttentionBackward{causal, scale, window}.compose(b, TensorSpan<B>(parts.data(), parts.size()));
    return {transpose(gradients[0], 1, 2), transpose(gradients[1], 1, 2), transpose(gradients[2], 1, 2)};
  }
};

template <class B>
void CrossAttention::vjp(Vjp<B>& v) const {
  const CrossAttentionBackward backward{causal, scale, window};
  const Tensor<B> q = v.input(0), k = v.input(1), value = v.input(2), o = v.output(0), lse = v.output(1);
  if (v.input_count() > 3)
    v.into_all({0, 1, 2}, backward, v.grad(), q, k, value, o, lse, v.input(3));
  else
    v.into_all({0, 1, 2}, backward, v.grad(), q, k, value, o, lse);
}

}  // namespace op

// Kernels (backend/concept.hpp): those of attention, on views.
FERRITE_API void run(Cpu&, const op::CrossAttention& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::CrossAttention& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::CrossAttention& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::CrossAttention& op, MetaSpan in);
FERRITE_API void run(Cpu&, const op::CrossAttentionBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::CrossAttentionBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API bool accepts(const Cpu&, const op::CrossAttentionBackward& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::CrossAttentionBackward& op, MetaSpan in);

/// attention(q, k, v) of tensors whose heads are the last axis but one: a projection [N, T, H D] needs a
/// reshape, and no transpose.
/// # Shapes: q [N, T, H, D], k [N, S, K, D], v [N, S, K, E], mask (optional) broadcastable to [N, H, T, S]
/// -> [N, T, H, E]
template <class B>
Tensor<B> cross_attention(const Tensor<B>& q, const Tensor<B>& k, const Tensor<B>& v,
                          AttentionConfig config = {}, const Tensor<B>& mask = {}) {
  detail::check_rank("cross_attention", "q", q.shape(), 4);
  const double scale = config.scale != 0 ? config.scale : 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  const op::CrossAttention attend{config.causal, scale, config.window};
  return mask.defined() ? eval(attend, q, k, v, mask) : eval(attend, q, k, v);
}

}  // namespace ferrite
