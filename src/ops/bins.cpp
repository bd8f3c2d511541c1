// Shape rules of order_statistics and bucketize, and the arithmetic of quantiles.
#include <fmt/format.h>

#include "ferrite/ops/bucketize.hpp"
#include "ferrite/ops/order_statistics.hpp"

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

namespace {
void check_f64(std::string_view op, std::string_view what, DType dtype) {
  if (dtype != DType::f64)
    throw DTypeError(fmt::format("[{}] {} is {}: needs f64", op, what, to_string(dtype)));
}
}  // namespace

Metas OrderStatistics::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "levels", in[1].shape, 1);
  check_f64(type_name, "levels", in[1].dtype);
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

Metas Bucketize::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "edges", in[1].shape, 2);
  check_f64(type_name, "edges", in[1].dtype);
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

}  // namespace op
}  // namespace ferrite
