// Shape rules of the contractions: matmul, linear, attention.
#include "ferrite/ops/matmul.hpp"

#include <fmt/format.h>

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/linear.hpp"

namespace ferrite::op {

namespace {
double product(double a, double b, double c) { return 2 * a * b * c; }

Cost attention_cost(const Shape& q, const Shape& v, bool causal, double products, MetaSpan in, MetaSpan out) {
  const double pairs =
      static_cast<double>(q[0] * q[1]) * static_cast<double>(q[2]) * static_cast<double>(v[2]);
  Cost cost{products * pairs * static_cast<double>(q[3] + v[3]) * (causal ? 0.5 : 1), 0};
  for (const Meta& m : in) cost.bytes += static_cast<double>(m.bytes());
  for (const Meta& m : out) cost.bytes += static_cast<double>(m.bytes());
  return cost;
}
}  // namespace

Metas Matmul::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  const Shape &a = in[0].shape, &b = in[1].shape;
  const auto operands = [&] { return fmt::format("[matmul] lhs {} and rhs {}", to_string(a), to_string(b)); };
  if (a.rank() < 2 || b.rank() < 2) throw ShapeError(operands() + ": both need at least two axes");
  const std::int64_t inner = a.back(), other = b[b.rank() - 2];
  if (inner != other)
    throw ShapeError(fmt::format("{}: inner dimensions {} and {} differ", operands(), inner, other));
  Shape batch_a = a, batch_b = b;
  for (int i = 0; i < 2; ++i) {
    batch_a.erase(batch_a.rank() - 1);
    batch_b.erase(batch_b.rank() - 1);
  }
  Shape shape = broadcast(type_name, batch_a, batch_b);
  shape.push_back(a[a.rank() - 2]);
  shape.push_back(b.back());
  const DType dtype = promote(in[0].dtype, in[1].dtype);
  if (dtype == DType::bool_) throw DTypeError("[matmul] both operands are bool: cast one to a number");
  return {Meta{shape, dtype}};
}

Cost Matmul::cost(MetaSpan in, MetaSpan out) const {
  return {2 * static_cast<double>(out[0].shape.numel()) * static_cast<double>(in[0].shape.back()),
          static_cast<double>(in[0].bytes() + in[1].bytes() + out[0].bytes())};
}

double Matmul::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

std::string_view to_string(Activation activation) {
  constexpr std::string_view names[] = {"none", "relu", "gelu", "silu", "tanh", "sigmoid"};
  return names[static_cast<int>(activation)];
}

Unary activation_op(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return {UnaryFn::relu};
    case Activation::gelu:
      return {UnaryFn::gelu_tanh};
    case Activation::silu:
      return {UnaryFn::silu};
    case Activation::tanh:
      return {UnaryFn::tanh};
    case Activation::sigmoid:
      return {UnaryFn::sigmoid};
    default:
      throw ValueError("[linear] activation none has no function");
  }
}

bool Linear::keeps_pre_activation() const {
  return activation != Activation::none && !activation_op(activation).differentiates_from_output();
}

Saves Linear::saves() const {
  if (activation == Activation::none) return {.inputs = {0, 1}};
  return {.inputs = {0, 1}, .outputs = {keeps_pre_activation() ? 1u : 0u}};
}

Metas Linear::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 3);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "weight", in[1].shape, 2);
  if (in[0].shape[1] != in[1].shape[1])
    throw ShapeError(fmt::format("[linear] x {} and weight {}: inner dimensions {} and {} differ",
                                 ferrite::to_string(in[0].shape), ferrite::to_string(in[1].shape),
                                 in[0].shape[1], in[1].shape[1]));
  if (in.size() > 2) detail::check_shape(type_name, "bias", in[2].shape, {in[1].shape[0]});
  DType dtype = promote(in[0].dtype, in[1].dtype);
  if (in.size() > 2) dtype = promote(dtype, in[2].dtype);
  detail::check_floating(type_name, "result", dtype);
  const Meta y{{in[0].shape[0], in[1].shape[0]}, dtype};
  return keeps_pre_activation() ? Metas{y, y} : Metas{y};
}

Cost Linear::cost(MetaSpan in, MetaSpan out) const {
  Cost cost{product(static_cast<double>(in[0].shape[0]), static_cast<double>(in[0].shape[1]),
                    static_cast<double>(in[1].shape[0])),
            0};
  for (const Meta& m : in) cost.bytes += static_cast<double>(m.bytes());
  for (const Meta& m : out) cost.bytes += static_cast<double>(m.bytes());
  return cost;
}

double Linear::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape[1]); }

namespace {
/// q, k, v and perhaps a mask that fit each other; what attention gives for them.
Metas check_attention(std::string_view op, MetaSpan in) {
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  detail::check_rank(op, "q", q, 4);
  detail::check_rank(op, "k", k, 4);
  detail::check_rank(op, "v", v, 4);
  if (q[0] != k[0] || q[1] != k[1] || q[3] != k[3] || k[0] != v[0] || k[1] != v[1] || k[2] != v[2])
    throw ShapeError(fmt::format("[{}] q {}, k {}, v {}: need [B, H, T, D], [B, H, S, D] and [B, H, S, E]",
                                 op, ferrite::to_string(q), ferrite::to_string(k), ferrite::to_string(v)));
  detail::check_floating(op, "q", in[0].dtype);
  if (in[1].dtype != in[0].dtype || in[2].dtype != in[0].dtype)
    throw DTypeError(fmt::format("[{}] q {}, k {}, v {}: need one dtype", op, ferrite::to_string(in[0].dtype),
                                 ferrite::to_string(in[1].dtype), ferrite::to_string(in[2].dtype)));
  if (in.size() > 3) {
    const Shape full{q[0], q[1], q[2], k[2]};
    if (!(broadcast(op, in[3].shape, full) == full))
      throw ShapeError(fmt::format("[{}] mask {}: must broadcast to {}", op, ferrite::to_string(in[3].shape),
                                   ferrite::to_string(full)));
    if (in[3].dtype != DType::bool_ && !is_floating(in[3].dtype))
      throw DTypeError(fmt::format("[{}] mask is {}: needs bool (true keeps) or a floating dtype (added)", op,
                                   ferrite::to_string(in[3].dtype)));
  }
  return {Meta{{q[0], q[1], q[2], v[3]}, in[0].dtype}, Meta{{q[0], q[1], q[2]}, wide_dtype(in[0].dtype)}};
}
}  // namespace

Metas Attention::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 4);
  return check_attention(type_name, in);
}

Cost Attention::cost(MetaSpan in, MetaSpan out) const {
  return attention_cost(in[0].shape, in[2].shape, causal, 2, in, out);
}
double Attention::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape[3] + in[1].shape[2]);
}

Metas AttentionBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 6, 7);
  Metas forward{in[1], in[2], in[3]};
  if (in.size() > 6) forward.push_back(in[6]);
  const Metas results = check_attention(type_name, forward);
  detail::check_shape(type_name, "gradient", in[0].shape, results[0].shape);
  detail::check_floating(type_name, "gradient", in[0].dtype);
  detail::check_shape(type_name, "o", in[4].shape, results[0].shape);
  detail::check_dtype(type_name, "o", in[4].dtype, results[0].dtype);
  detail::check_shape(type_name, "lse", in[5].shape, results[1].shape);
  detail::check_dtype(type_name, "lse", in[5].dtype, results[1].dtype);
  return {in[1], in[2], in[3]};
}
Cost AttentionBackward::cost(MetaSpan in, MetaSpan out) const {
  return attention_cost(in[1].shape, in[3].shape, causal, 5, in, out);
}
double AttentionBackward::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[1].shape[2] + in[1].shape[3] + in[2].shape[2]);
}

}  // namespace ferrite::op
