// random: names and shape rule.
#include "ferrite/ops/random.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ferrite::op {

std::string_view to_string(RandomFn fn) {
  static constexpr std::string_view names[] = {"uniform", "normal", "bernoulli", "integer"};
  return names[static_cast<int>(fn)];
}

std::string_view Random::name() const {
  static constexpr std::string_view names[] = {"rand", "randn", "bernoulli", "randint"};
  return names[static_cast<int>(fn)];
}

namespace {
/// The integers that a dtype holds; of floats, those in its range.
struct IntegerRange {
  double least, beyond;
};
IntegerRange integer_range(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return {0, 2};
    case DType::u8:
      return {0, 256};
    case DType::i32:
      return {-0x1p31, 0x1p31};
    case DType::f16:
      return {-65504, 65505};
    default:
      return {-0x1p63, 0x1p63};
  }
}
}  // namespace

Metas Random::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 0, 0);
  check_extents(name(), shape);
  const auto reject = [&](std::string_view rule) {
    throw ValueError(fmt::format("[{}] parameters {} and {}: {}", name(), low, high, rule));
  };
  if (!std::isfinite(low) || !std::isfinite(high)) reject("must be finite");
  switch (fn) {
    case RandomFn::uniform:
    case RandomFn::normal:
      detail::check_floating(name(), "dtype", dtype);
      if (fn == RandomFn::uniform && high < low) reject("low must not exceed high");
      if (fn == RandomFn::normal && high < 0) reject("the standard deviation must not be negative");
      break;
    case RandomFn::bernoulli:
      if (!(low >= 0 && low <= 1)) reject("the probability must lie in [0, 1]");
      break;
    case RandomFn::integer:
      if (!(low < high) || low != std::floor(low) || high != std::floor(high))
        reject("need integers low < high");
      if (const auto [least, beyond] = integer_range(dtype); low < least || high > beyond)
        reject(fmt::format("{} holds integers from {} to below {}", to_string(dtype), least, beyond));
      break;
  }
  return {Meta{shape, dtype}};
}

}  // namespace ferrite::op
