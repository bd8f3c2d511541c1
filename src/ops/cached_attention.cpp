// cached_attention: shape rule, cost.
#include "ferrite/ops/cached_attention.hpp"

#include <fmt/format.h>

namespace ferrite::op {

Metas CachedAttention::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 6, 6);
  const Shape &q = in[0].shape, &k = in[1].shape, &keys = in[3].shape;
  detail::check_rank(type_name, "q", q, 4);
  detail::check_rank(type_name, "k", k, 4);
  detail::check_rank(type_name, "keys", keys, 4);
  if (k[1] < 1 || q[1] % k[1] != 0)
    throw ShapeError(fmt::format("[{}] q {} and k {}: the heads of k must divide those of q", type_name,
                                 ferrite::to_string(q), ferrite::to_string(k)));
  detail::check_shape(type_name, "k", k, {q[0], k[1], q[2], q[3]});
  detail::check_shape(type_name, "v", in[2].shape, k);
  detail::check_shape(type_name, "keys", keys, {q[0], k[1], keys[2], q[3]});
  detail::check_shape(type_name, "values", in[4].shape, keys);
  if (q[2] < 1 || q[2] > keys[2])
    throw ShapeError(fmt::format("[{}] q {} and keys {}: needs at least one new position, and room for all",
                                 type_name, ferrite::to_string(q), ferrite::to_string(keys)));
  if (window < 0)
    throw ValueError(
        fmt::format("[{}] a window of {}: give at least 1, or 0 for all positions", type_name, window));
  detail::check_floating(type_name, "q", in[0].dtype);
  detail::check_dtype(type_name, "k", in[1].dtype, in[0].dtype);
  detail::check_dtype(type_name, "v", in[2].dtype, in[0].dtype);
  detail::check_floating(type_name, "keys", in[3].dtype);
  detail::check_dtype(type_name, "values", in[4].dtype, in[3].dtype);
  detail::check_shape(type_name, "read", in[5].shape, {q[0]});
  detail::check_dtype(type_name, "read", in[5].dtype, DType::i32);
  return {in[0], in[3], in[4]};
}

/// As if the cache were full, which is the most that it can cost.
Cost CachedAttention::cost(MetaSpan in, MetaSpan) const {
  const double pairs = static_cast<double>(in[0].shape.numel()) * static_cast<double>(in[3].shape[2]);
  Cost cost{4 * pairs, 2 * static_cast<double>(in[0].bytes())};
  for (std::size_t i = 1; i < 5; ++i) cost.bytes += static_cast<double>(in[i].bytes());
  return cost;
}

double CachedAttention::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape[3] + in[3].shape[2]);
}

}  // namespace ferrite::op
