// Dot products of f32 rows and rows of 8-bit weights. Where the processor multiplies bytes (dotprod of Arm),
// a row is first written as fixed-point numbers of 31 bits, in units of 2^-30 of its largest element's
// binade, and these as four bytes each: sums of bytes are exact, and read weights faster than memory gives
// them. Elements down to 1/128 of the largest lose no bit, so results are at least as good as sums in f32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backend_cpu/gemm/matrix.hpp"
#include "backend_cpu/simd/simd.hpp"

#if defined(__ARM_FEATURE_DOTPROD)
#define FERRITE_DOTPROD
#elif defined(__aarch64__) && defined(__linux__) && !defined(__clang__)
// The instruction sets that kernels are compiled for do not say whether they have it.
#include <sys/auxv.h>
#if defined(__ARM_FEATURE_SVE)
#define FERRITE_DOTPROD [[gnu::target("arch=armv8.2-a+sve+dotprod")]]
#else
#define FERRITE_DOTPROD [[gnu::target("arch=armv8.2-a+dotprod")]]
#endif
#endif

namespace ferrite::cpu {

/// Rows of weights that are multiplied at once.
inline constexpr int dot_rows = 4;

inline bool multiplies_bytes() {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;
#elif defined(FERRITE_DOTPROD)
  static const bool has = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  return has;
#else
  return false;
#endif
}

#if defined(FERRITE_DOTPROD)

inline constexpr int digits = 4;

/// Dense rows of finite numbers as fixed-point numbers, of which each byte is a digit of base 256 from -128
/// to 127.
class FixedPointRows {
 public:
  FixedPointRows(const float* x, std::int64_t rows, std::int64_t n)
      : n_(n), digits_(rows * digits * n), units_(rows) {
    for (std::int64_t i = 0; i < rows; ++i)
      units_.data()[i] = write(x + i * n, digits_.data() + i * digits * n);
  }
  /// Digit d of row i, the lowest first.
  const std::int8_t* digit(std::int64_t i, int d) const { return digits_.data() + (i * digits + d) * n_; }
  double unit(std::int64_t i) const { return units_.data()[i]; }

 private:
  [[gnu::flatten]] double write(const float* x, std::int8_t* to) const {
    const float largest = simd::max<float>(n_, [&](auto at) { return simd::magnitude(at(x)); });
    if (!(largest > 0)) {
      std::fill_n(to, digits * n_, std::int8_t{0});
      return 0;
    }
    // Two factors, as one of a row of tiny numbers would be infinite.
    const int exponent = std::ilogb(largest) + 1;
    const int half = (30 - exponent) / 2;
    const float first = std::ldexp(1.0f, half), second = std::ldexp(1.0f, 30 - exponent - half);
    const std::int64_t n = n_;
    for (std::int64_t k = 0; k < n; ++k) {
      auto rest = static_cast<std::int32_t>(x[k] * first * second);
      for (int d = 0; d < digits; ++d) {
        const auto digit = static_cast<std::int8_t>(rest);
        to[d * n + k] = digit;
        rest = (rest - digit) >> 8;
      }
    }
    return std::ldexp(1.0, exponent - 30);
  }

  std::int64_t n_;
  Scratch<std::int8_t> digits_;
  Scratch<double> units_;
};

/// sums[r] = the dot product of row i of x and w[r], in x's units.
FERRITE_DOTPROD inline void multiply_bytes(const FixedPointRows& x, std::int64_t i,
                                           const std::int8_t* const (&w)[dot_rows], std::int64_t n,
                                           double (&sums)[dot_rows]) {
  constexpr std::int64_t lanes = 16, most = 1 << 16;  // sums of more products could leave 32 bits
  const std::int8_t* const digit[digits] = {x.digit(i, 0), x.digit(i, 1), x.digit(i, 2), x.digit(i, 3)};
  for (double& sum : sums) sum = 0;
  for (std::int64_t begin = 0; begin < n; begin += most) {
    const std::int64_t end = std::min(n, begin + most), whole = begin + (end - begin) / lanes * lanes;
    int32x4_t partial[dot_rows][digits];
    for (auto& row : partial)
      for (int32x4_t& sum : row) sum = vdupq_n_s32(0);
    for (std::int64_t k = begin; k < whole; k += lanes) {
      int8x16_t factor[digits];
      for (int d = 0; d < digits; ++d) factor[d] = vld1q_s8(digit[d] + k);
      for (int r = 0; r < dot_rows; ++r) {
        const int8x16_t weights = vld1q_s8(w[r] + k);
        for (int d = 0; d < digits; ++d) partial[r][d] = vdotq_s32(partial[r][d], weights, factor[d]);
      }
    }
    for (int r = 0; r < dot_rows; ++r) {
      for (int d = 0; d < digits; ++d) {
        std::int32_t sum = vaddvq_s32(partial[r][d]);
        for (std::int64_t k = whole; k < end; ++k) sum += w[r][k] * digit[d][k];
        sums[r] += static_cast<double>(sum) * static_cast<double>(std::int64_t{1} << 8 * d);
      }
    }
  }
}

#endif

}  // namespace ferrite::cpu
