// Names, promotion rules and the portable binary16 conversions of the element types.
#include "ferrite/core/dtype.hpp"

#include <string>

#include "ferrite/core/error.hpp"
#include "ferrite/core/scalar.hpp"

namespace ferrite {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::bool_:
      return "bool";
    case DType::i8:
      return "i8";
    case DType::u16:
      return "u16";
    case DType::u32:
      return "u32";
  }
  return "invalid";
}

DType dtype_from_string(std::string_view name) {
  std::string valid;
  for (DType dtype : all_dtypes) {
    if (to_string(dtype) == name) return dtype;
    valid.append(valid.empty() ? "" : ", ").append(to_string(dtype));
  }
  throw DTypeError("[dtype_from_string] '" + std::string(name) + "': must be one of " + valid);
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0x1p-23;
    case DType::f64:
      return 0x1p-52;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0;
  }
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  for (const DType dtype : {a, b})
    if (is_storage(dtype)) detail::throw_storage(dtype);
  if (b == DType::bool_) return a;
  if (a == DType::bool_) return b;
  if (is_floating(a) && is_floating(b)) {
    return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
  }
  if (is_integer(a) && is_integer(b)) {
    return a == DType::i64 || b == DType::i64 ? DType::i64 : DType::i32;
  }
  // Every float holds all u8 values; only f64 holds all i32 values, and it is the widest for i64.
  const DType integer = is_integer(a) ? a : b;
  const DType floating = is_integer(a) ? b : a;
  return integer == DType::u8 ? floating : DType::f64;
}

DType promote(DType tensor, Scalar scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::real:
      return float_result(tensor);
    case Scalar::Kind::integer:
      return tensor == DType::bool_ ? DType::i64 : tensor;
    case Scalar::Kind::boolean:
      break;
  }
  return tensor;
}

DType float_result(DType dtype) {
  if (is_floating(dtype)) return dtype;
  return size_of(dtype) >= 4 ? DType::f64 : DType::f32;
}

DType sum_result(DType dtype) { return is_floating(dtype) ? dtype : DType::i64; }

namespace detail {

void throw_storage(DType dtype) {
  const std::string name(to_string(dtype));
  throw DTypeError("[dtype] " + name +
                   " is for storage, not for arithmetic: cast it first, e.g. cast(x, DType::i32)");
}

float half_to_float_portable(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  if (exponent == 0x1f) {
    const std::uint32_t quiet = mantissa ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t float_to_half_portable(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  const std::uint32_t magnitude = u & 0x7fffffffu;
  std::uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536 and above, infinity included
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal results; rounding may carry into infinity, as it should
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // Subnormal results: adding 0.5 aligns the last bit kept with the last bit of a float, so that the
    // addition itself rounds to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace detail
}  // namespace ferrite
