// order_statistics: shape rule, and the arithmetic of quantiles.
#include "ferrite/ops/order_statistics.hpp"

#include <fmt/format.h>

namespace ferrite {

std::string_view to_string(QuantileMethod method) {
  switch (method) {
    case QuantileMethod::linear:
      return "linear";
    case QuantileMethod::inverted_cdf:
      return "inverted_cdf";
    default:
      return "averaged_inverted_cdf";
  }
}

double interpolate_quantile(double lower, double upper, double weight) {
  if (lower == upper) return lower;
  if (std::isinf(lower) || std::isinf(upper)) return weight < 0.5 ? lower : upper;
  const double distance = upper - lower;
  if (std::isinf(distance)) {                                                 // more than the range of f64
    const volatile double low = lower * (1 - weight), high = upper * weight;  // rounded: no fma
    return low + high;
  }
  const volatile double step = distance * (weight < 0.5 ? weight : 1 - weight);  // rounded: no fma
  return weight < 0.5 ? lower + step : upper - step;
}

namespace op {

Metas OrderStatistics::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "levels", in[1].shape, 1);
  detail::check_dtype(type_name, "levels", in[1].dtype, DType::f64);
  if (in[0].shape[0] < 1)
    throw ShapeError(fmt::format("[{}] x {}: needs at least one row", type_name, to_string(in[0].shape)));
  const std::int64_t columns = in[0].shape[1];
  const Meta values{{columns, in[1].shape[0]}, in[0].dtype};
  return {values, values, Meta{{columns}, DType::i64}};
}

Cost OrderStatistics::cost(MetaSpan in, MetaSpan out) const {
  const auto bytes = [](const Meta& m) { return static_cast<double>(m.bytes()); };
  return {static_cast<double>(in[0].shape.numel()), bytes(in[0]) + bytes(out[0]) + bytes(out[1])};
}

}  // namespace op
}  // namespace ferrite
