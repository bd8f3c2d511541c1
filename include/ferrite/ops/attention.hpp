// attention: softmax(q k^T scale + mask) v. Scores and the softmax are accumulated in f32 (f64 for f64).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/core/config.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/statistic.hpp"

namespace ferrite {
namespace op {

/// # Shapes: q [B, H, T, D], k [B, K, S, D], v [B, K, S, E], mask (optional) broadcastable to [B, H, T, S]
/// -> o [B, H, T, E], lse [B, H, T] (log-sum-exp of the scores; f32, f64 for f64)
/// K divides H: each head of k and v serves H / K heads of q in a row (grouped-query attention; multi-query
/// with K = 1). A bool mask keeps true elements; a floating mask is added. The position of query t among the
/// keys is p = t + S - T. causal: it sees keys s <= p. window w > 0: only keys s with |p - s| < w. A query
/// that sees no key gives 0.
struct FERRITE_API Attention {
  static constexpr LibraryName type_name = "attention";
  static constexpr std::string_view later_attribute = "window";
  static constexpr Positions lowered = {0, 1, 2};
  bool causal = false;
  double scale = 1;
  std::int64_t window = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(3, {1, 2, 3, 4}, d); }
  static void attributes(auto& self, auto&& visit) {
    visit("causal", self.causal);
    visit("scale", self.scale);
    visit("window", self.window);
  }

  /// k or v [B, K, S, D] -> [B, heads, S, D], each head as often as it serves one of q.
  template <class B>
  static Tensor<B> repeated(const Tensor<B>& x, std::int64_t heads) {
    const Shape& s = x.shape();
    if (s[1] == heads) return x;
    return reshape(expand(unsqueeze(x, 2), {s[0], s[1], heads / s[1], s[2], s[3]}),
                   {s[0], heads, s[2], s[3]});
  }
  /// Its adjoint: the sums over the heads that each of `heads` serves.
  template <class B>
  static Tensor<B> grouped_sum(const Tensor<B>& x, std::int64_t heads) {
    const Shape& s = x.shape();
    if (s[1] == heads) return x;
    return sum(reshape(x, {s[0], heads, s[1] / heads, s[2], s[3]}), {2});
  }

  /// Scaled and masked scores, -inf where a key is hidden; k has as many heads as q.
  template <class B>
  Tensor<B> scores(B& b, const Tensor<B>& q, const Tensor<B>& k, const Tensor<B>* mask) const {
    const double hidden = -std::numeric_limits<double>::infinity();
    Tensor<B> s = matmul(q, transpose(k, -1, -2)) * scale;
    if (mask && mask->dtype() == DType::bool_)
      s = where(*mask, s, hidden);
    else if (mask)
      s = s + *mask;
    if (!causal && window == 0) return s;
    const std::int64_t t = q.size(-2), n = k.size(-2);
    const Tensor<B> place = unsqueeze(arange(b, t), 1) + (n - t), key = arange(b, n);
    if (causal) s = where(key <= place, s, hidden);
    if (window == 0) return s;
    const std::int64_t reach = std::min(window, t + n);  // as good as any larger, and no sum overflows
    s = where(key > place - reach, s, hidden);
    return causal ? s : where(key < place + reach, s, hidden);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    if (in[1].size(-2) == 0) {
      const Shape &q = in[0].shape(), rows{q[0], q[1], q[2]};
      return {zeros(b, {q[0], q[1], q[2], in[2].size(-1)}, in[0].dtype()),
              full(b, rows, -std::numeric_limits<double>::infinity(), in[0].dtype())};
    }
    const std::int64_t heads = in[0].size(1);
    const Tensor<B> s = scores(b, in[0], repeated(in[1], heads), in.size() > 3 ? &in[3] : nullptr);
    const Tensor<B> lse = logsumexp(s, {-1}, KeepDim::yes);
    const Tensor<B> p = exp(s - where(isfinite(lse), lse, 0));
    return {matmul(p, repeated(in[2], heads)), squeeze(lse, {-1})};
  }
  Saves saves() const { return {.inputs = {0, 1, 2, 3}, .outputs = {0, 1}}; }  // q, k, v, mask; o, lse
  /// The mask has no gradient of its own in the fused form; a differentiable mask is composed.
  bool has_vjp(Positions needed) const { return !needed.contains(3); }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// Inputs (do, q, k, v, o, lse[, mask]) -> dq, dk, dv.
struct FERRITE_API AttentionBackward {
  static constexpr LibraryName type_name = "attention_backward";
  static constexpr std::string_view later_attribute = "window";
  static constexpr Positions lowered = {0, 1, 2, 3, 4};
  bool causal = false;
  double scale = 1;
  std::int64_t window = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const {
    Metas in = detail::alike(5, {1, 2, 3, 4}, d);
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
    const Attention forward{causal, scale, window};
    const std::int64_t heads = in[1].size(1), shared_heads = in[2].size(1);
    const Tensor<B>&grad = in[0], &q = in[1], &o = in[4], &lse = in[5];
    const Tensor<B> k = forward.repeated(in[2], heads), v = forward.repeated(in[3], heads);
    const Tensor<B> s = forward.scores(b, q, k, in.size() > 6 ? &in[6] : nullptr);
    const Tensor<B> p = exp(s - unsqueeze(where(isfinite(lse), lse, 0), -1));
    const Tensor<B> dp = matmul(grad, transpose(v, -1, -2));
    const Tensor<B> ds = p * (dp - sum(grad * o, {-1}, KeepDim::yes)) * scale;
    return {matmul(ds, k), forward.grouped_sum(matmul(transpose(ds, -1, -2), q), shared_heads),
            forward.grouped_sum(matmul(transpose(p, -1, -2), grad), shared_heads)};
  }
};

template <class B>
void Attention::vjp(Vjp<B>& v) const {
  const AttentionBackward backward{causal, scale, window};
  const Tensor<B> q = v.input(0), k = v.input(1), value = v.input(2), o = v.output(0), lse = v.output(1);
  if (v.input_count() > 3)
    v.into_all({0, 1, 2}, backward, v.grad(), q, k, value, o, lse, v.input(3));
  else
    v.into_all({0, 1, 2}, backward, v.grad(), q, k, value, o, lse);
}

}  // namespace op

// Kernels (backend/concept.hpp).
/// Does not store all scores: scratch is a few blocks per thread.
FERRITE_API void run(Cpu&, const op::Attention& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Attention& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::Attention& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Attention& op, MetaSpan in);
FERRITE_API void run(Cpu&, const op::AttentionBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::AttentionBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API bool accepts(const Cpu&, const op::AttentionBackward& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::AttentionBackward& op, MetaSpan in);

/// causal: query t sees keys s <= t + S - T.
struct AttentionConfig {
  bool causal = false;
  /// 0 means 1 / sqrt(D).
  double scale = 0;
  /// Query t sees only keys s with |t + S - T - s| < window: with causal, the last `window` keys. 0: no
  /// limit.
  std::int64_t window = 0;
  AttentionConfig with_causal(bool value) const {
    return detail::with(*this, &AttentionConfig::causal, value);
  }
  AttentionConfig with_scale(double value) const {
    return detail::with(*this, &AttentionConfig::scale, value);
  }
  AttentionConfig with_window(std::int64_t value) const {
    return detail::with(*this, &AttentionConfig::window, value);
  }
};

/// # Shapes: q [B, H, T, D], k [B, K, S, D], v [B, K, S, E], mask (optional) -> [B, H, T, E]
/// K divides H: with fewer heads of keys and values each serves H / K heads of queries in a row.
template <class B>
Tensor<B> attention(const Tensor<B>& q, const Tensor<B>& k, const Tensor<B>& v, AttentionConfig config = {},
                    const Tensor<B>& mask = {}) {
  detail::check_rank("attention", "q", q.shape(), 4);
  const double scale = config.scale != 0 ? config.scale : 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  const op::Attention attend{config.causal, scale, config.window};
  return mask.defined() ? eval(attend, q, k, v, mask) : eval(attend, q, k, v);
}

}  // namespace ferrite
