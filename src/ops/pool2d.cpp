// Pools and their gradients: shape rules.
#include "ferrite/ops/pool2d.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/pair_rule.hpp"

namespace ferrite::op {

Shape PoolGeometry::output(std::string_view op, const Shape& x) const {
  detail::check_rank(op, "x", x, 4);
  check_extents(op, x);
  check_pair(op, "kernel", kernel, 1);
  check_pair(op, "stride", stride, 0);
  check_pair(op, "padding", padding, 0);
  Shape shape = x;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t room = x[2 + i] + 2 * padding[i];
    if (2 * padding[i] > kernel[i] || kernel[i] > room)
      throw ShapeError(fmt::format(
          "[{}] kernel {} with padding {} on x {}: padding is at most half the kernel, and the kernel "
          "must fit",
          op, to_string(kernel), to_string(padding), to_string(x)));
    shape[2 + i] = (room - kernel[i]) / step(i) + 1;
  }
  return shape;
}

Metas MaxPool2d::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_floating(type_name, "x", in[0].dtype);
  const Shape shape = geometry.output(type_name, in[0].shape);
  return {Meta{shape, in[0].dtype}, Meta{shape, DType::i64}};
}

Metas MaxPool2dBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_floating(type_name, "gradient", in[0].dtype);
  detail::check_rank(type_name, "gradient", in[0].shape, 4);
  detail::check_dtype(type_name, "index", in[1].dtype, DType::i64);
  detail::check_shape(type_name, "index", in[1].shape, in[0].shape);
  detail::check_rank(type_name, "input shape", input, 4);
  check_extents(type_name, input);
  if (in[0].shape[0] != input[0] || in[0].shape[1] != input[1])
    throw ShapeError(fmt::format("[{}] gradient {} and input {}: images and channels differ", type_name,
                                 to_string(in[0].shape), to_string(input)));
  return {Meta{input, in[0].dtype}};
}
void MaxPool2dBackward::throw_place(std::int64_t index, std::int64_t position) const {
  throw ValueError(fmt::format("[{}] index {} at position {} is out of range for planes of {} elements",
                               type_name, index, position, input[2] * input[3]));
}
double MaxPool2dBackward::reduction_length(MetaSpan in) const {
  return std::max(
      1.0, static_cast<double>(in[0].shape.numel()) / std::max(1.0, static_cast<double>(input.numel())));
}

Metas AvgPool2d::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_floating(type_name, "x", in[0].dtype);
  return {Meta{geometry.output(type_name, in[0].shape), in[0].dtype}};
}
double AvgPool2d::reduction_length(MetaSpan) const { return static_cast<double>(geometry.kernel.numel()); }

Metas AvgPool2dBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_floating(type_name, "gradient", in[0].dtype);
  detail::check_shape(type_name, "gradient", in[0].shape, geometry.output(type_name, input));
  return {Meta{input, in[0].dtype}};
}
double AvgPool2dBackward::reduction_length(MetaSpan) const {
  return static_cast<double>(geometry.kernel.numel());
}

}  // namespace ferrite::op
