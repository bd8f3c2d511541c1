// self_attention and its gradient: shape rules, costs, and views of packed arrays.
#include "ferrite/ops/self_attention.hpp"

#include <fmt/format.h>

#include "ops/attention_rules.hpp"

namespace ferrite::op {

namespace {

/// q, k and v as attention takes them, after a check of the packed shape.
Metas parts_of(std::string_view op, const Meta& packed) {
  const Shape& s = packed.shape;
  detail::check_rank(op, "packed", s, 5);
  if (s[2] != 3)
    throw ShapeError(
        fmt::format("[{}] packed {}: needs [N, T, 3, H, D], with queries, keys and values along "
                    "the third axis",
                    op, ferrite::to_string(s)));
  detail::check_floating(op, "packed", packed.dtype);
  const Meta part = part_of_packed(packed);
  return {part, part, part};
}

Meta result_of(const Meta& packed) {
  const Shape& s = packed.shape;
  return {{s[0], s[1], s[3], s[4]}, packed.dtype};
}
Meta statistics_of(const Meta& packed) {
  const Shape& s = packed.shape;
  return {{s[0], s[3], s[1]}, wide_dtype(packed.dtype)};
}

/// The inputs of AttentionBackward.
Metas backward_parts(std::string_view op, MetaSpan in) {
  Metas parts = parts_of(op, in[1]);
  const Meta grad{parts[0].shape, in[0].dtype};
  return {grad, parts[0], parts[1], parts[2], parts[0], in[3]};
}

}  // namespace

Metas SelfAttention::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  check_window(type_name, window);
  parts_of(type_name, in[0]);
  return {result_of(in[0]), statistics_of(in[0])};
}
Cost SelfAttention::cost(MetaSpan in, MetaSpan out) const {
  return cost_of(Attention{causal, scale, window}.cost(parts_of(type_name, in[0]), {}).flops, in, out);
}
double SelfAttention::reduction_length(MetaSpan in) const {
  return Attention{causal, scale, window}.reduction_length(parts_of(type_name, in[0]));
}

Metas SelfAttentionBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 4, 4);
  check_window(type_name, window);
  parts_of(type_name, in[1]);
  const Meta result = result_of(in[1]), statistics = statistics_of(in[1]);
  detail::check_shape(type_name, "gradient", in[0].shape, result.shape);
  detail::check_floating(type_name, "gradient", in[0].dtype);
  detail::check_shape(type_name, "o", in[2].shape, result.shape);
  detail::check_dtype(type_name, "o", in[2].dtype, result.dtype);
  detail::check_shape(type_name, "lse", in[3].shape, statistics.shape);
  detail::check_dtype(type_name, "lse", in[3].dtype, statistics.dtype);
  return {in[1]};
}
Cost SelfAttentionBackward::cost(MetaSpan in, MetaSpan out) const {
  return cost_of(AttentionBackward{causal, scale, window}.cost(backward_parts(type_name, in), {}).flops, in,
                 out);
}
double SelfAttentionBackward::reduction_length(MetaSpan in) const {
  return AttentionBackward{causal, scale, window}.reduction_length(backward_parts(type_name, in));
}

Meta part_of_packed(const Meta& packed) {
  const Shape& s = packed.shape;
  return {{s[0], s[3], s[1], s[4]}, packed.dtype};
}

std::array<Array, 3> heads_of_packed(const Array& packed) {
  const auto part = [&](std::int64_t i) {
    const Layout one = packed.layout().slice(2, i, 1, 1);  // [N, T, 1, H, D]
    const Shape &shape = one.shape, &strides = one.strides;
    return packed.with_layout({{shape[0], shape[3], shape[1], shape[4]},
                               {strides[0], strides[3], strides[1], strides[4]},
                               one.offset});
  };
  return {part(0), part(1), part(2)};
}

Array heads_first(const Array& x) { return x.with_layout(x.layout().permute({0, 2, 1, 3})); }

}  // namespace ferrite::op
