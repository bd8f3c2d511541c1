// cross_attention and its gradient: shape rules and costs.
#include "ferrite/ops/cross_attention.hpp"

#include <fmt/format.h>

#include "ops/attention_rules.hpp"

namespace ferrite::op {

namespace {

/// The inputs [first, first + 3), which are q, k and v, must have these ranks and extents in common.
void check_axes(std::string_view op, MetaSpan in, std::size_t first) {
  const Shape &q = in[first].shape, &k = in[first + 1].shape, &v = in[first + 2].shape;
  detail::check_rank(op, "q", q, 4);
  detail::check_rank(op, "k", k, 4);
  detail::check_rank(op, "v", v, 4);
  if (q[0] != k[0] || q[3] != k[3] || k[0] != v[0] || k[1] != v[1] || k[2] != v[2])
    throw ShapeError(fmt::format("[{}] q {}, k {}, v {}: need [N, T, H, D], [N, S, K, D] and [N, S, K, E]",
                                 op, ferrite::to_string(q), ferrite::to_string(k), ferrite::to_string(v)));
}

/// The inputs of attention, or of its gradient: the first `count` have heads first.
Metas heads_first(MetaSpan in, std::size_t count) {
  Metas parts;
  for (std::size_t i = 0; i < in.size(); ++i) parts.push_back(i < count ? swapped(in[i]) : in[i]);
  return parts;
}
Metas forward_parts(MetaSpan in) { return heads_first(in, 3); }
Metas backward_parts(MetaSpan in) { return heads_first(in, 5); }

}  // namespace

Metas CrossAttention::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 4);
  check_window(type_name, window);
  check_axes(type_name, in, 0);
  const Metas results = check_attention(type_name, forward_parts(in));
  return {swapped(results[0]), results[1]};
}
Cost CrossAttention::cost(MetaSpan in, MetaSpan out) const {
  return with_bytes(Attention{causal, scale, window}.cost(forward_parts(in), {}), in, out);
}
double CrossAttention::reduction_length(MetaSpan in) const {
  return Attention{causal, scale, window}.reduction_length(forward_parts(in));
}

Metas CrossAttentionBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 6, 7);
  check_window(type_name, window);
  check_axes(type_name, in, 1);
  detail::check_rank(type_name, "gradient", in[0].shape, 4);
  detail::check_rank(type_name, "o", in[4].shape, 4);
  check_attention_backward(type_name, backward_parts(in));
  return {in[1], in[2], in[3]};
}
Cost CrossAttentionBackward::cost(MetaSpan in, MetaSpan out) const {
  return with_bytes(AttentionBackward{causal, scale, window}.cost(backward_parts(in), {}), in, out);
}
double CrossAttentionBackward::reduction_length(MetaSpan in) const {
  return AttentionBackward{causal, scale, window}.reduction_length(backward_parts(in));
}

}  // namespace ferrite::op
