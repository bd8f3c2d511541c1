// What attention, self_attention and cross_attention have in common: rules of attributes and shapes.
#pragma once

#include "ops/cost.hpp"

namespace ferrite::op {

inline void check_window(std::string_view op, std::int64_t window) {
  detail::check_attribute(op, "window", static_cast<double>(window), window >= 0,
                          "must be the number of keys that a query sees, or 0 for no limit");
}

/// Where an op has the heads and the rows of q, k, v and o.
struct AttentionAxes {
  std::size_t heads, rows;
  std::string_view form;  // for messages
};
inline constexpr AttentionAxes heads_before_rows{1, 2, "[B, H, T, D], [B, K, S, D] and [B, K, S, E]"};
inline constexpr AttentionAxes rows_before_heads{2, 1, "[N, T, H, D], [N, S, K, D] and [N, S, K, E]"};

/// Throws unless q, k, v and perhaps a mask fit each other; what attention gives for them.
Metas check_attention(std::string_view op, MetaSpan in, const AttentionAxes& axes);
/// The same of a gradient's inputs; what the gradient gives.
Metas check_attention_backward(std::string_view op, MetaSpan in, const AttentionAxes& axes);

/// [N, T, H, D] as [N, H, T, D], or the other way round.
inline Meta swapped(const Meta& x) { return {{x.shape[0], x.shape[2], x.shape[1], x.shape[3]}, x.dtype}; }

}  // namespace ferrite::op
