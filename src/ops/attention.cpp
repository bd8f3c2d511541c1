// attention and its gradient: shape rules and costs.
#include "ferrite/ops/attention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/attention_rules.hpp"

namespace ferrite::op {

namespace {

/// `op` is Attention or AttentionBackward.
template <class Op>
Cost attention_cost(const Op& op, const Shape& q, const Shape& v, double products, MetaSpan in,
                    MetaSpan out) {
  double keys = static_cast<double>(v[2]) * (op.causal ? 0.5 : 1);
  if (op.window > 0) keys = std::min(keys, static_cast<double>(op.window) * (op.causal ? 1 : 2));
  const double queries = static_cast<double>(q[0] * q[1]) * static_cast<double>(q[2]);
  return cost_of(products * queries * keys * static_cast<double>(q[3] + v[3]), in, out);
}

}  // namespace

Metas check_attention(std::string_view op, MetaSpan in, const AttentionAxes& axes) {
  const auto [heads, rows, form] = axes;
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  detail::check_rank(op, "q", q, 4);
  detail::check_rank(op, "k", k, 4);
  detail::check_rank(op, "v", v, 4);
  if (q[0] != k[0] || q[3] != k[3] || k[0] != v[0] || k[1] != v[1] || k[2] != v[2])
    throw ShapeError(fmt::format("[{}] q {}, k {}, v {}: need {}", op, ferrite::to_string(q),
                                 ferrite::to_string(k), ferrite::to_string(v), form));
  if (q[heads] != k[heads] && (k[heads] == 0 || q[heads] % k[heads] != 0))
    throw ShapeError(
        fmt::format("[{}] q {} and k {}: the {} heads of k and v must divide the {} of q, which share them",
                    op, ferrite::to_string(q), ferrite::to_string(k), k[heads], q[heads]));
  detail::check_floating(op, "q", in[0].dtype);
  if (in[1].dtype != in[0].dtype || in[2].dtype != in[0].dtype)
    throw DTypeError(fmt::format("[{}] q {}, k {}, v {}: need one dtype", op, ferrite::to_string(in[0].dtype),
                                 ferrite::to_string(in[1].dtype), ferrite::to_string(in[2].dtype)));
  if (in.size() > 3) {
    const Shape full{q[0], q[heads], q[rows], k[rows]};
    if (!(broadcast(op, in[3].shape, full) == full))
      throw ShapeError(fmt::format("[{}] mask {}: must broadcast to {}", op, ferrite::to_string(in[3].shape),
                                   ferrite::to_string(full)));
    if (in[3].dtype != DType::bool_ && !is_floating(in[3].dtype))
      throw DTypeError(fmt::format("[{}] mask is {}: needs bool (true keeps) or a floating dtype (added)", op,
                                   ferrite::to_string(in[3].dtype)));
  }
  return {Meta{{q[0], q[1], q[2], v[3]}, in[0].dtype},
          Meta{{q[0], q[heads], q[rows]}, wide_dtype(in[0].dtype)}};
}

Metas check_attention_backward(std::string_view op, MetaSpan in, const AttentionAxes& axes) {
  Metas forward{in[1], in[2], in[3]};
  if (in.size() > 6) forward.push_back(in[6]);
  const Metas results = check_attention(op, forward, axes);
  detail::check_shape(op, "gradient", in[0].shape, results[0].shape);
  detail::check_floating(op, "gradient", in[0].dtype);
  detail::check_shape(op, "o", in[4].shape, results[0].shape);
  detail::check_dtype(op, "o", in[4].dtype, results[0].dtype);
  detail::check_shape(op, "lse", in[5].shape, results[1].shape);
  detail::check_dtype(op, "lse", in[5].dtype, results[1].dtype);
  return {in[1], in[2], in[3]};
}

Metas Attention::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 4);
  check_window(type_name, window);
  return check_attention(type_name, in, heads_before_rows);
}

Cost Attention::cost(MetaSpan in, MetaSpan out) const {
  return attention_cost(*this, in[0].shape, in[2].shape, 2, in, out);
}
double Attention::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape[3] + in[1].shape[2]);
}

Metas AttentionBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 6, 7);
  check_window(type_name, window);
  return check_attention_backward(type_name, in, heads_before_rows);
}
Cost AttentionBackward::cost(MetaSpan in, MetaSpan out) const {
  return attention_cost(*this, in[1].shape, in[3].shape, 5, in, out);
}
double AttentionBackward::reduction_length(MetaSpan in) const {
  const Shape &q = in[1].shape, &k = in[2].shape;
  const double sharing = k[1] > 0 ? static_cast<double>(q[1] / k[1]) : 1;  // heads of q for each of k
  return std::max(sharing, 1.0) * static_cast<double>(q[2]) + static_cast<double>(q[3] + k[2]);
}

}  // namespace ferrite::op
