// rope: the shape rule, and the frequencies of models.
#include "ferrite/ops/rope.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace ferrite {

std::string_view to_string(RopePairs pairs) { return pairs == RopePairs::halves ? "halves" : "neighbours"; }

namespace op {

Metas Rope::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 3);
  const Shape& x = in[0].shape;
  detail::check_floating(type_name, "x", in[0].dtype);
  const int place = axis < 0 ? axis + x.rank() : axis;
  if (place < 0 || place >= x.rank() - 1)
    throw ShapeError(fmt::format("[{}] axis {} of x {}: positions must lie along an axis before the last",
                                 type_name, axis, ferrite::to_string(x)));
  if (x.back() % 2 != 0)
    throw ShapeError(
        fmt::format("[{}] x {}: rows of {} elements do not make pairs: the last extent must be "
                    "even",
                    type_name, ferrite::to_string(x), x.back()));
  detail::check_shape(type_name, "frequencies", in[1].shape, {x.back() / 2});
  detail::check_dtype(type_name, "frequencies", in[1].dtype, wide_dtype(in[0].dtype));
  constexpr std::int64_t most = std::int64_t{1} << 52;  // sums are exact, in f64 too
  detail::check_attribute(type_name, "start", static_cast<double>(start), start >= -most && start <= most,
                          "must be within 2^52 of 0");
  if (in.size() > 2) {
    detail::check_shape(type_name, "positions", in[2].shape, {x[place]});
    if (in[2].dtype != DType::i32 && in[2].dtype != DType::i64)
      throw DTypeError(
          fmt::format("[{}] positions are {}: need i32 or i64", type_name, ferrite::to_string(in[2].dtype)));
  }
  return {in[0]};
}

/// An angle of p radians is rounded by up to p epsilon, as a sum of p^2 terms would be.
double Rope::reduction_length(MetaSpan in) const {
  const Shape& x = in[0].shape;
  const double count = static_cast<double>(x[axis < 0 ? axis + x.rank() : axis]);
  const double last = std::abs(static_cast<double>(start)) + count;
  return 2 + last * last;
}
Cost Rope::cost(MetaSpan in, MetaSpan out) const {
  const double elements = static_cast<double>(in[0].shape.numel());
  return {3 * elements, static_cast<double>(in[0].bytes() + in[1].bytes() + out[0].bytes())};
}

}  // namespace op

void RopeConfig::check() const {
  const auto require = [](bool meets, const char* name, double value, const char* rule) {
    if (!meets) throw ValueError(fmt::format("[RopeConfig] {} {}: {}", name, value, rule));
  };
  require(theta > 0 && std::isfinite(theta), "theta", theta, "must be above 0");
  if (!scaling) return;
  require(scaling->factor >= 1 && std::isfinite(scaling->factor), "factor", scaling->factor,
          "must be at least 1");
  if (scaling->kind == RopeScaling::Kind::linear) return;
  require(scaling->low_freq_factor > 0, "low_freq_factor", scaling->low_freq_factor, "must be above 0");
  require(scaling->high_freq_factor > scaling->low_freq_factor && std::isfinite(scaling->high_freq_factor),
          "high_freq_factor", scaling->high_freq_factor, "must be above low_freq_factor");
  require(scaling->original_context >= 1, "original_context", static_cast<double>(scaling->original_context),
          "must be at least 1");
}

std::vector<float> RopeConfig::frequencies(std::int64_t width) const {
  check();
  if (width < 2 || width % 2 != 0)
    throw ValueError(fmt::format("[RopeConfig] rows of {} elements: must be even and at least 2", width));
  std::vector<float> result;
  for (std::int64_t i = 0; i < width; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(width);
    // The power is rounded once: f32 functions of other libraries differ in the last bit.
    result.push_back(1.0f / static_cast<float>(std::pow(theta, static_cast<double>(exponent))));
  }
  if (!scaling) return result;
  const auto factor = static_cast<float>(scaling->factor);
  const auto context = static_cast<float>(scaling->original_context);
  const auto low = static_cast<float>(scaling->low_freq_factor);
  const auto high = static_cast<float>(scaling->high_freq_factor);
  for (float& frequency : result) {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
    const float kept = (context / wavelength - low) / (high - low);  // 0: all divided, 1: as it was
    const bool linear = scaling->kind == RopeScaling::Kind::linear;
    if (linear || wavelength > context / low)
      frequency = frequency / factor;
    else if (!(wavelength < context / high))
      frequency = (1 - kept) * frequency / factor + kept * frequency;
  }
  return result;
}

}  // namespace ferrite
