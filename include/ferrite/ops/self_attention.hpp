// self_attention: attention whose queries, keys and values are parts of one tensor, as one projection gives
// them. Nothing is taken apart or put together: kernels read the parts where they lie, and the gradient is
// one tensor, as the projection needs it.
#pragma once

#include <array>

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/cat.hpp"

namespace ferrite {
namespace op {

/// # Shapes: packed [N, T, 3, H, D] (queries, keys, values) -> o [N, T, H, D], lse [N, H, T] (as Attention's)
struct FERRITE_API SelfAttention {
  static constexpr LibraryName type_name = "self_attention";
  static constexpr Positions lowered = {0};
  bool causal = false;
  double scale = 1;
  std::int64_t window = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{1, 3, 3, 2, 4}, d}}; }
  static void attributes(auto& self, auto&& visit) {
    visit("causal", self.causal);
    visit("scale", self.scale);
    visit("window", self.window);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const auto part = [&](std::int64_t i) { return transpose(select(in[0], 2, i), 1, 2); };
    // Not attention as an op: of its results only the first would carry a gradient.
    const std::array parts = {part(0), part(1), part(2)};
    const Tensors<B> results = Attention{causal, scale, window}.compose(b, TensorSpan<B>(parts));
    return {transpose(results[0], 1, 2), results[1]};
  }
  Saves saves() const { return {.inputs = {0}, .outputs = {0, 1}}; }  // packed; o, lse
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// Inputs (do, packed, o, lse) -> dpacked.
struct FERRITE_API SelfAttentionBackward {
  static constexpr LibraryName type_name = "self_attention_backward";
  static constexpr Positions lowered = {0, 1, 2};
  bool causal = false;
  double scale = 1;
  std::int64_t window = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const {
    return {{{1, 3, 2, 4}, d}, {{1, 3, 3, 2, 4}, d}, {{1, 3, 2, 4}, d}, detail::statistics({1, 2, 3}, d)};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("causal", self.causal);
    visit("scale", self.scale);
    visit("window", self.window);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const auto part = [&](std::int64_t i) { return transpose(select(in[1], 2, i), 1, 2); };
    const std::array parts = {transpose(in[0], 1, 2), part(0), part(1), part(2),
                              transpose(in[2], 1, 2), in[3]};
    const Tensors<B> gradients = AttentionBackward{causal, scale, window}.compose(b, TensorSpan<B>(parts));
    const auto of_part = [&](std::size_t i) { return transpose(gradients[i], 1, 2); };
    return {stack(std::vector<Tensor<B>>{of_part(0), of_part(1), of_part(2)}, 2)};
  }
};

template <class B>
void SelfAttention::vjp(Vjp<B>& v) const {
  v.into(0, SelfAttentionBackward{causal, scale, window}, v.grad(), v.input(0), v.output(0), v.output(1));
}

/// For kernels: shape and dtype of queries, keys and values, [N, H, T, D] each; views of them; and a view of
/// [N, T, H, D] as [N, H, T, D].
FERRITE_API Meta part_of_packed(const Meta& packed);
FERRITE_API std::array<Array, 3> heads_of_packed(const Array& packed);
FERRITE_API Array heads_first(const Array& x);

}  // namespace op

// Kernels (backend/concept.hpp): those of attention, on views.
FERRITE_API void run(Cpu&, const op::SelfAttention& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::SelfAttention& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::SelfAttention& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::SelfAttention& op, MetaSpan in);
FERRITE_API void run(Cpu&, const op::SelfAttentionBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::SelfAttentionBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API bool accepts(const Cpu&, const op::SelfAttentionBackward& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::SelfAttentionBackward& op, MetaSpan in);

/// # Shapes: packed [N, T, 3, H, D] (queries, keys, values) -> [N, T, H, D]
template <class B>
Tensor<B> self_attention(const Tensor<B>& packed, AttentionConfig config = {}) {
  detail::check_rank("self_attention", "packed", packed.shape(), 5);
  const double depth = static_cast<double>(packed.size(-1));
  const double scale = config.scale != 0 ? config.scale : 1.0 / std::sqrt(depth);
  return eval(op::SelfAttention{config.causal, scale, config.window}, packed);
}

}  // namespace ferrite
