// Scalar: a number that takes the dtype of the tensor it meets.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ferrite/core/dtype.hpp"

namespace ferrite {

/// A literal next to a tensor is weak, as in NumPy 2: it changes the result's kind (bool < integer < real)
/// but never its width.
class Scalar {
 public:
  enum class Kind : std::uint8_t { boolean, integer, real };

  constexpr Scalar() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T value)  // NOLINT(google-explicit-constructor): literals are the point
      : real_(static_cast<double>(value)),
        integer_(integer_of(value)),
        kind_(std::is_same_v<T, bool>       ? Kind::boolean
              : std::is_floating_point_v<T> ? Kind::real
                                            : Kind::integer) {}

  Kind kind() const { return kind_; }
  double to_double() const { return real_; }
  std::int64_t to_int() const { return kind_ == Kind::real ? convert<std::int64_t>(real_) : integer_; }
  /// Converts like a tensor's element: integers wrap to the width of T, real numbers saturate.
  template <class T>
  T to() const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return kind_ == Kind::real ? convert<T>(real_) : static_cast<T>(integer_);
    else
      return convert<T>(real_);
  }
  friend bool operator==(const Scalar&, const Scalar&) = default;

 private:
  /// What no dtype can hold is the largest i64, so that bounds and comparisons are right: SIZE_MAX is not -1.
  template <class T>
  static constexpr std::int64_t integer_of(T value) {
    if constexpr (std::is_floating_point_v<T>)
      return 0;
    else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8)
      return value > static_cast<T>(INT64_MAX) ? INT64_MAX : static_cast<std::int64_t>(value);
    else
      return static_cast<std::int64_t>(value);
  }

  double real_ = 0;
  std::int64_t integer_ = 0;
  Kind kind_ = Kind::integer;
};

/// The dtype of `tensor op scalar`.
FERRITE_API DType promote(DType tensor, Scalar scalar);

}  // namespace ferrite
