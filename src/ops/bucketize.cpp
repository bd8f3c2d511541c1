// bucketize: shape rule.
#include "ferrite/ops/bucketize.hpp"

#include <fmt/format.h>

namespace ferrite::op {

Metas Bucketize::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "edges", in[1].shape, 2);
  detail::check_dtype(type_name, "edges", in[1].dtype, DType::f64);
  if (in[1].shape[0] != in[0].shape[1])
    throw ShapeError(fmt::format("[{}] x {} and edges {}: needs one row of edges per column of x", type_name,
                                 to_string(in[0].shape), to_string(in[1].shape)));
  if (!is_integer(dtype) || dtype == DType::i8 || dtype == DType::u32)
    throw DTypeError(
        fmt::format("[{}] dtype {}: tokens are u8, u16, i32 or i64", type_name, to_string(dtype)));
  const std::int64_t most = dtype == DType::u8 ? 255 : dtype == DType::u16 ? 65535 : INT32_MAX;
  if (in[1].shape[1] > most || missing < 0 || missing > most)
    throw ValueError(fmt::format("[{}] {} edges and missing token {}: {} holds tokens from 0 to {}",
                                 type_name, in[1].shape[1], missing, to_string(dtype), most));
  return {Meta{in[0].shape, dtype}};
}

Cost Bucketize::cost(MetaSpan in, MetaSpan out) const {
  const double elements = static_cast<double>(in[0].shape.numel());
  return {elements * std::ceil(std::log2(1.0 + static_cast<double>(in[1].shape[1]))),
          static_cast<double>(in[0].bytes() + in[1].bytes() + out[0].bytes())};
}

}  // namespace ferrite::op
