// next_token: shape rule.
#include "ferrite/ops/next_token.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ferrite::op {

Metas NextToken::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 5, 5);
  detail::check_attribute(type_name, "temperature", temperature,
                          temperature >= 0 && std::isfinite(temperature),
                          "must be 0 (the likeliest token) or more");
  detail::check_attribute(type_name, "top_k", static_cast<double>(top_k), top_k >= 0,
                          "must be 0 (all tokens) or more");
  detail::check_attribute(type_name, "top_p", top_p, top_p > 0 && top_p <= 1,
                          "must lie above 0 and be at most 1 (all tokens)");
  detail::check_attribute(type_name, "repetition_penalty", repetition_penalty,
                          repetition_penalty > 0 && std::isfinite(repetition_penalty),
                          "must be positive; 1 means none");
  detail::check_attribute(type_name, "vocabulary", static_cast<double>(vocabulary), vocabulary >= 0,
                          "must be 0 (all tokens) or more");
  const Shape& scores = in[0].shape;
  detail::check_rank(type_name, "scores", scores, 2);
  detail::check_floating(type_name, "scores", in[0].dtype);
  if (scores[1] < 1)
    throw ShapeError(fmt::format("[{}] scores {}: no tokens", type_name, ferrite::to_string(scores)));
  detail::check_rank(type_name, "text", in[1].shape, 2);
  const std::int64_t capacity = in[1].shape[1];
  detail::check_shape(type_name, "text", in[1].shape, {scores[0], capacity});
  detail::check_dtype(type_name, "text", in[1].dtype, DType::i32);
  detail::check_shape(type_name, "read", in[2].shape, {scores[0]});
  detail::check_dtype(type_name, "read", in[2].dtype, DType::i32);
  detail::check_shape(type_name, "uniforms", in[3].shape, in[1].shape);
  detail::check_dtype(type_name, "uniforms", in[3].dtype, DType::f64);
  detail::check_shape(type_name, "seen", in[4].shape, scores);
  detail::check_dtype(type_name, "seen", in[4].dtype, DType::bool_);
  return {in[1], in[2], in[4], {{scores[0]}, DType::i32}};
}

}  // namespace ferrite::op
