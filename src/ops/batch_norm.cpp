// batch_norm and its gradient: shape rules and costs.
#include "ferrite/ops/batch_norm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/norm_rules.hpp"

namespace ferrite::op {

namespace {
/// x [N, C, ...] with something to normalise.
void check_channels(std::string_view op, const Meta& x) {
  detail::check_floating(op, "x", x.dtype);
  if (x.shape.rank() < 2)
    throw ShapeError(fmt::format("[{}] x {}: needs [N, C, ...]", op, to_string(x.shape)));
  if (x.shape[1] > 0 && x.shape.numel() == 0)
    throw ShapeError(fmt::format("[{}] x {}: no elements per channel", op, to_string(x.shape)));
}
}  // namespace

Shape BatchNorm::reduced_axes(int rank) {
  Shape axes;
  for (int i = 0; i < rank; ++i)
    if (i != 1) axes.push_back(i);
  return axes;
}

Shape BatchNorm::channel_shape(const Shape& x) {
  Shape shape = Shape::filled(x.rank(), 1);
  shape[1] = x[1];
  return shape;
}

Metas BatchNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  check_eps(type_name, eps);
  check_channels(type_name, in[0]);
  const std::int64_t channels = in[0].shape[1];
  check_parameter(type_name, "weight", in[1], channels);
  check_parameter(type_name, "bias", in[2], channels);
  const Meta channel = statistic_of(in[0], {channels});
  return {in[0], channel, channel};
}
Cost BatchNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 8); }
double BatchNorm::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape.numel()) / std::max(1.0, static_cast<double>(in[0].shape[1]));
}

Metas BatchNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 5, 5);
  check_channels(type_name, in[1]);
  check_gradient(type_name, in[0], in[1].shape);
  const std::int64_t channels = in[1].shape[1];
  check_parameter(type_name, "weight", in[2], channels);
  check_statistic(type_name, "mean", in[3], statistic_of(in[1], {channels}));
  check_statistic(type_name, "rstd", in[4], statistic_of(in[1], {channels}));
  return {in[1], in[2], in[2]};
}
Cost BatchNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double BatchNormBackward::reduction_length(MetaSpan in) const {
  return BatchNorm{}.reduction_length(in.subspan(1));
}

}  // namespace ferrite::op
