// cross_attention and its gradient: shape rules and costs.
#include "ferrite/ops/cross_attention.hpp"

#include "ops/attention_rules.hpp"

namespace ferrite::op {

namespace {

/// The inputs of attention, or of its gradient, whose first `count` have rows before heads here.
Metas as_of_attention(MetaSpan in, std::size_t count) {
  Metas parts;
  for (std::size_t i = 0; i < in.size(); ++i) parts.push_back(i < count ? swapped(in[i]) : in[i]);
  return parts;
}

}  // namespace

Metas CrossAttention::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 4);
  check_window(type_name, window);
  return check_attention(type_name, in, rows_before_heads);
}
Cost CrossAttention::cost(MetaSpan in, MetaSpan out) const {
  return cost_of(Attention{causal, scale, window}.cost(as_of_attention(in, 3), {}).flops, in, out);
}
double CrossAttention::reduction_length(MetaSpan in) const {
  return Attention{causal, scale, window}.reduction_length(as_of_attention(in, 3));
}

Metas CrossAttentionBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 6, 7);
  check_window(type_name, window);
  return check_attention_backward(type_name, in, rows_before_heads);
}
Cost CrossAttentionBackward::cost(MetaSpan in, MetaSpan out) const {
  return cost_of(AttentionBackward{causal, scale, window}.cost(as_of_attention(in, 5), {}).flops, in, out);
}
double CrossAttentionBackward::reduction_length(MetaSpan in) const {
  return AttentionBackward{causal, scale, window}.reduction_length(as_of_attention(in, 5));
}

}  // namespace ferrite::op
