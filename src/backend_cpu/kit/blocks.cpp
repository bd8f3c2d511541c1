// Conversions between dtypes, one block at a time.
#include <algorithm>
#include <cstring>

#include "ferrite/cpu/blocks.hpp"

#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace ferrite::cpu {
namespace {

/// Memory from outside may hold bools other than 0 and 1, so they are read as bytes.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// Converts as many leading elements as possible with vector instructions that compilers do not find by
/// themselves; returns how many. binary16 is the only case.
template <class From, class To>
std::int64_t convert_head(const From*, To*, std::int64_t) {
  return 0;
}
#if defined(__F16C__)
std::int64_t convert_head(const Half* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  return i;
}
std::int64_t convert_head(const float* x, Half* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
  return i;
}
#elif defined(__ARM_NEON) && defined(__ARM_FP16_FORMAT_IEEE)
std::int64_t convert_head(const float* x, Half* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    vst1_u16(reinterpret_cast<std::uint16_t*>(y + i), vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
  return i;
}
#endif

template <class From, class To>
void convert_loop(const Stored<From>* x, To* y, std::int64_t n) {
  const std::int64_t done = convert_head(x, y, n);
  x += done;
  y += done;
  for_each_index(n - done, [=](std::int64_t i) { y[i] = convert<To>(convert<From>(x[i])); });
}

}  // namespace

void convert_block(DType from, const void* source, DType to, void* target, std::int64_t n) {
  if (from == to) {
    std::memcpy(target, source, static_cast<std::size_t>(n) * size_of(from));
    return;
  }
  visit_any_dtype(from, [&]<class From>() {
    visit_any_dtype(to, [&]<class To>() {
      if constexpr (!std::is_same_v<From, To>)
        convert_loop<From, To>(static_cast<const Stored<From>*>(source), static_cast<To*>(target), n);
    });
  });
}

void fill_block(DType dtype, const void* value, void* target, std::int64_t n) {
  visit_size(size_of(dtype),
             [&]<class E>() { std::fill_n(static_cast<E*>(target), n, *static_cast<const E*>(value)); });
}

void add_block(DType dtype, const void* source, void* target, std::int64_t n) {
  visit_compute(dtype, [&]<class C>() {
    using Wrapping = std::conditional_t<std::is_integral_v<C>, std::uint64_t, C>;
    const auto* x = static_cast<const Wrapping*>(source);
    auto* y = static_cast<Wrapping*>(target);
    for_each_index(n, [=](std::int64_t i) { y[i] += x[i]; });
  });
}

}  // namespace ferrite::cpu
