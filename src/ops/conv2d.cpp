// conv2d and its gradients: shape rules and costs.
#include "ferrite/ops/conv2d.hpp"

#include <fmt/format.h>

#include "ferrite/core/integers.hpp"
#include "ops/cost.hpp"
#include "ops/pair_rule.hpp"

namespace ferrite::op {

namespace {
double conv_flops(const Shape& y, const Shape& w) {
  return 2 * static_cast<double>(y.numel()) * static_cast<double>(w[1] * w[2] * w[3]);
}

Cost conv_cost(const Shape& y, const Shape& w, MetaSpan in, MetaSpan out) {
  return cost_of(conv_flops(y, w), in, out);
}

/// Floating x [N, C, H, W] and weight [O, C / groups, kh, kw] that fit each other -> y [N, O, Ho, Wo].
Shape convolved(std::string_view op, const ConvGeometry& geometry, const Shape& x, const Shape& w) {
  detail::check_rank(op, "x", x, 4);
  detail::check_rank(op, "weight", w, 4);
  check_extents(op, x);
  check_extents(op, w);
  geometry.check(op);
  if (x[1] % geometry.groups != 0 || x[1] / geometry.groups != w[1] || w[0] % geometry.groups != 0)
    throw ShapeError(
        fmt::format("[{}] x {} and weight {} with {} groups: weight needs [O, C / groups, kh, kw] with O a "
                    "multiple of groups",
                    op, to_string(x), to_string(w), geometry.groups));
  return {x[0], w[0], geometry.output_extent(op, 0, x[2], w[2]), geometry.output_extent(op, 1, x[3], w[3])};
}

/// The gradient of a convolution's result, and the other operand.
Meta check_conv_gradient(std::string_view op, MetaSpan in, std::string_view operand, const Shape& y,
                         const Shape& result) {
  detail::check_floating(op, "gradient", in[0].dtype);
  detail::check_floating(op, operand, in[1].dtype);
  detail::check_shape(op, "gradient", in[0].shape, y);
  return {result, promote(in[0].dtype, in[1].dtype)};
}
}  // namespace

void ConvGeometry::check(std::string_view op) const {
  check_pair(op, "stride", stride, 1);
  check_pair(op, "padding", padding, 0);
  check_pair(op, "dilation", dilation, 1);
  if (groups < 1) throw ValueError(fmt::format("[{}] groups {}: must be at least 1", op, groups));
}

std::int64_t ConvGeometry::output_extent(std::string_view op, int i, std::int64_t input,
                                         std::int64_t kernel) const {
  const std::int64_t reach = kernel < 1 ? 0 : saturating_multiply_add(kernel - 1, dilation[i], 1);
  const std::int64_t room = input + 2 * padding[i];
  if (kernel < 1 || reach > room)
    throw ShapeError(
        fmt::format("[{}] kernel extent {} with dilation {} reaches {} elements but the padded input has {}",
                    op, kernel, dilation[i], reach, room));
  return (room - reach) / stride[i] + 1;
}

Metas Conv2d::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 3);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_floating(type_name, "weight", in[1].dtype);
  const Shape y = convolved(type_name, geometry, in[0].shape, in[1].shape);
  if (in.size() > 2) {
    detail::check_floating(type_name, "bias", in[2].dtype);
    detail::check_shape(type_name, "bias", in[2].shape, {y[1]});
  }
  return {Meta{y, promote(in[0].dtype, in[1].dtype)}};
}
Cost Conv2d::cost(MetaSpan in, MetaSpan out) const { return conv_cost(out[0].shape, in[1].shape, in, out); }
double Conv2d::reduction_length(MetaSpan in) const {
  const Shape& w = in[1].shape;
  return static_cast<double>(w[1] * w[2] * w[3]);
}

Metas Conv2dInputGrad::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  return {check_conv_gradient(type_name, in, "weight", convolved(type_name, geometry, input, in[1].shape),
                              input)};
}
Cost Conv2dInputGrad::cost(MetaSpan in, MetaSpan out) const {
  return conv_cost(in[0].shape, in[1].shape, in, out);
}
double Conv2dInputGrad::reduction_length(MetaSpan in) const {
  const Shape& w = in[1].shape;
  return static_cast<double>(w[0] * w[2] * w[3]) / static_cast<double>(geometry.groups);
}

Metas Conv2dWeightGrad::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  Meta result =
      check_conv_gradient(type_name, in, "x", convolved(type_name, geometry, in[1].shape, weight), weight);
  result.dtype = detail::sum_dtype(type_name, result.dtype, at_least);
  return {result};
}
Cost Conv2dWeightGrad::cost(MetaSpan in, MetaSpan out) const {
  return conv_cost(in[0].shape, weight, in, out);
}
double Conv2dWeightGrad::reduction_length(MetaSpan in) const {
  const Shape& y = in[0].shape;
  return static_cast<double>(y[0] * y[2] * y[3]);
}

}  // namespace ferrite::op
