// 16-bit floats for emitted C++.
#include "kernel/emit/half.hpp"

#include <fmt/format.h>

#include <string_view>

namespace ferrite::kernel {

namespace {

constexpr std::string_view cpp_half = R"(struct half {
  unsigned short bits;
  half() = default;
  half(double x) {
    int exponent = 0;
    std::frexp(x, &exponent);
    const double step = std::ldexp(1.0, std::max(exponent - 11, -24));  // between neighbours
    const float y = float(x == 0 || !std::isfinite(x) ? x : std::nearbyint(x / step) * step);
    unsigned int u;
    std::memcpy(&u, &y, 4);
    const unsigned int sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
    const unsigned int tiny = (unsigned int)(std::fabs(y) * 16777216.0f);
    bits = (unsigned short)(sign | (size > 0x7f800000 ? 0x7e00u : size >= 0x47800000 ? 0x7c00u : size < 0x38800000 ? tiny : (size - 0x38000000) >> 13));
  }
  operator float() const {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31 ? (fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity())
                       : exponent == 0 ? std::ldexp(float(fraction), -24) : std::ldexp(float(fraction + 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
  }
};
)";
constexpr std::string_view cpp_bfloat16 = R"(struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  bfloat16(double x) {
    int exponent = 0;
    std::frexp(x, &exponent);
    const double step = std::ldexp(1.0, std::max(exponent - 8, -133));  // between neighbours
    const float y = float(x == 0 || !std::isfinite(x) ? x : std::nearbyint(x / step) * step);
    unsigned int u;
    std::memcpy(&u, &y, 4);
    bits = (unsigned short)(u >> 16 | (x != x ? 0x40 : 0));
  }
  operator float() const {
    const unsigned int u = (unsigned int)bits << 16;
    float x;
    std::memcpy(&x, &u, 4);
    return x;
  }
};
)";

std::string half_operators(std::string_view type) {
  std::string text;
  for (const char op : {'+', '-', '*', '/'})
    text +=
        fmt::format("inline {0} operator{1}({0} a, {0} b) {{ return float(a) {1} float(b); }}\n", type, op);
  return text + fmt::format("inline {0} operator-({0} a) {{ return -float(a); }}\n\n", type);
}

}  // namespace

std::string half_of_cpp() { return std::string(cpp_half) + half_operators("half"); }
std::string bfloat16_of_cpp() { return std::string(cpp_bfloat16) + half_operators("bfloat16"); }

}  // namespace ferrite::kernel
