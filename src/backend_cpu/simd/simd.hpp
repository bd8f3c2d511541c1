// Loops over one row in vector registers. A kernel is a lambda that says what happens at one place of the
// row:
//
//   const W total = simd::sum<W>(n, [&](auto at) { return at(x) * at(w); });
//   simd::map(y, n, [&](auto at) { return (at(x) - mean) * scale; });
//
// where at(x) is the vector of x at that place. Compilers may not reorder floating-point additions, so they
// leave reductions scalar; sum and max keep several accumulators, in an order that depends only on n. Written
// with the vector types of g++ and clang: operators work lane by lane, and a number beside a vector is
// broadcast to its lanes. Callers are marked [[gnu::flatten]], which inlines the lambdas.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend_cpu/simd/past_caches.hpp"
#include "ferrite/core/dtype.hpp"
#include "ferrite/cpu/rows.hpp"
#include "math/vector_width.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace ferrite::simd {

template <class W>
struct VectorOf {
  typedef W type __attribute__((vector_size(vector_bytes)));
};
template <class W>
using Vec = typename VectorOf<W>::type;
template <class W>
inline constexpr std::int64_t lanes = vector_bytes / static_cast<std::int64_t>(sizeof(W));

/// A place in a row where a whole vector fits.
template <class W>
struct Whole {
  std::int64_t begin;

  FERRITE_INLINE Vec<W> operator()(const W* row) const {
    Vec<W> v;
    std::memcpy(&v, row + begin, sizeof v);
    return v;
  }
  FERRITE_INLINE void store(W* row, Vec<W> v) const { std::memcpy(row + begin, &v, sizeof v); }
  FERRITE_INLINE void store(const cpu::OutputRow<W>& row, Vec<W> v) const {
    if (row.past_caches)
      store_past_caches(row.data + begin, v);
    else
      store(row.data, v);
  }
  FERRITE_INLINE Vec<W> keep(Vec<W> v, W) const { return v; }
  /// v with `value` for the element of the row at `place`, if that is here. Without a branch: v stays in its
  /// register.
  FERRITE_INLINE Vec<W> with(Vec<W> v, std::int64_t place, W value) const {
    using Lane = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;
    const std::int64_t distance = place - begin;
    const auto lane = static_cast<Lane>(distance >= 0 && distance < lanes<W> ? distance : -1);
    Vec<Lane> numbers;
    for (std::int64_t j = 0; j < lanes<W>; ++j) numbers[j] = static_cast<Lane>(j);
    return numbers == lane ? Vec<W>{} + value : v;
  }
};

/// The end of a row, where only the first `count` lanes stand for elements. The others read 0.
template <class W>
struct Part {
  std::int64_t begin, count;

  FERRITE_INLINE Vec<W> operator()(const W* row) const {
    Vec<W> v{};
    for (std::int64_t j = 0; j < count; ++j) v[j] = row[begin + j];
    return v;
  }
  FERRITE_INLINE void store(W* row, Vec<W> v) const {
    for (std::int64_t j = 0; j < count; ++j) row[begin + j] = v[j];
  }
  FERRITE_INLINE void store(const cpu::OutputRow<W>& row, Vec<W> v) const { store(row.data, v); }
  /// v with `value` in the lanes beyond the end.
  FERRITE_INLINE Vec<W> keep(Vec<W> v, W value) const {
    for (std::int64_t j = count; j < lanes<W>; ++j) v[j] = value;
    return v;
  }
  FERRITE_INLINE Vec<W> with(Vec<W> v, std::int64_t place, W value) const {
    return Whole<W>{begin}.with(v, place, value);
  }
};

inline constexpr int unroll = 6;  // independent chains, to hide the latency of additions and of exp

/// Fetches `count` elements from place `begin` on of a row, or of each of several, into the cache.
template <class W>
FERRITE_INLINE void fetch(const W* row, std::int64_t begin, std::int64_t count) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(W));
  if (row != nullptr)
    for (std::int64_t j = 0; j < count; j += line) __builtin_prefetch(row + begin + j);
}
template <class W, std::size_t rows>
FERRITE_INLINE void fetch(const std::array<const W*, rows>& each, std::int64_t begin, std::int64_t count) {
  for (const W* row : each) fetch(row, begin, count);
}

/// Computes f(place) for all places in [begin, end), `unroll` vectors at a time, and hands each to
/// sink(place, accumulator index, value). The same places of `ahead`, a row or several, are fetched into the
/// cache meanwhile: processors do not fetch from the next page of memory by themselves. A null that is not a
/// constant would be fetched from too, which takes long.
template <class W, class F, class Sink, class Ahead = const W*>
FERRITE_INLINE void walk(std::int64_t begin, std::int64_t end, F&& f, Sink&& sink, const Ahead& ahead = {}) {
  constexpr std::int64_t width = lanes<W>;
  std::int64_t i = begin;
  for (; i + unroll * width <= end; i += unroll * width) {
    fetch(ahead, i, unroll * width);
    decltype(f(Whole<W>{i})) values[unroll];
    for (int j = 0; j < unroll; ++j) values[j] = f(Whole<W>{i + j * width});
    for (int j = 0; j < unroll; ++j) sink(Whole<W>{i + j * width}, j, values[j]);
  }
  for (; i + width <= end; i += width) sink(Whole<W>{i}, 0, f(Whole<W>{i}));
  if (i < end) {
    const Part<W> rest{i, end - i};
    sink(rest, 0, f(rest));
  }
}

/// y = f(place). y may be a row that f reads.
template <class W, class F>
FERRITE_INLINE void map(const cpu::OutputRow<W>& y, std::int64_t n, F&& f, const W* ahead = nullptr) {
  walk<W>(
      0, n, f, [&](auto at, int, Vec<W> v) { at.store(y, v); }, ahead);
}
template <class W, class F>
FERRITE_INLINE void map(W* y, std::int64_t n, F&& f, const W* ahead = nullptr) {
  map(cpu::OutputRow<W>{y, y}, n, f, ahead);
}

/// The sum of the lanes, by halves: one after the other would take as long as a hundred elements.
template <class V>
FERRITE_INLINE auto across(V v) {
  constexpr int count = static_cast<int>(sizeof(V) / sizeof(v[0]));
  std::remove_cvref_t<decltype(v[0])> part[count];
  std::memcpy(part, &v, sizeof v);
  for (int width = count / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) part[j] += part[j + width];
  return part[0];
}

/// K sums in one walk; f returns an array of K vectors, which `sink` gets too. Blocks of a thousand elements
/// are added up in W, their sums in double.
template <class W, std::size_t K, class F, class Sink, class Ahead>
FERRITE_INLINE std::array<W, K> sums(std::int64_t n, F&& f, Sink&& sink, const Ahead& ahead) {
  constexpr std::int64_t block = 1024;
  std::array<double, K> total{};
  for (std::int64_t begin = 0; begin < n; begin += block) {
    Vec<W> partial[K][unroll] = {};
    const auto add = [&](auto at, int j, const std::array<Vec<W>, K>& v) {
      sink(at, v);
      for (std::size_t k = 0; k < K; ++k) partial[k][j] += at.keep(v[k], 0);
    };
    walk<W>(begin, std::min(n, begin + block), f, add, ahead);
    for (std::size_t k = 0; k < K; ++k) {
      Vec<W> v = partial[k][0];
      for (int j = 1; j < unroll; ++j) v += partial[k][j];
      total[k] += static_cast<double>(across(v));
    }
  }
  std::array<W, K> result;
  for (std::size_t k = 0; k < K; ++k) result[k] = static_cast<W>(total[k]);
  return result;
}
template <class W, std::size_t K, class F, class Ahead = const W*>
FERRITE_INLINE std::array<W, K> sums(std::int64_t n, F&& f, const Ahead& ahead = {}) {
  return sums<W, K>(
      n, f, [](auto, const auto&) {}, ahead);
}

template <class W, class F>
FERRITE_INLINE W sum(std::int64_t n, F&& f, const W* ahead = nullptr) {
  return sums<W, 1>(
      n, [&](auto at) { return std::array<Vec<W>, 1>{f(at)}; }, ahead)[0];
}

/// y = f(place), and the sum of y.
template <class W, class F>
FERRITE_INLINE W map_sum(W* y, std::int64_t n, F&& f, const W* ahead = nullptr) {
  return sums<W, 1>(
      n, [&](auto at) { return std::array<Vec<W>, 1>{f(at)}; },
      [&](auto at, const std::array<Vec<W>, 1>& v) { at.store(y, v[0]); }, ahead)[0];
}

/// The larger one lane by lane. NaN if b is NaN.
FERRITE_INLINE Vec<float> larger(Vec<float> a, Vec<float> b) {
#if defined(__aarch64__)
  return (Vec<float>)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
#else
  return a > b ? a : b;
#endif
}
FERRITE_INLINE Vec<double> larger(Vec<double> a, Vec<double> b) { return a > b ? a : b; }

template <class V>
FERRITE_INLINE V magnitude(V x) {
  return larger(-x, x);
}

/// -infinity for n = 0. A NaN in the row may or may not be the result.
template <class W, class F>
FERRITE_INLINE W max(std::int64_t n, F&& f) {
  constexpr W least = -std::numeric_limits<W>::infinity();
  const Vec<W> none = Vec<W>{} + least;
  Vec<W> top[unroll] = {none, none, none, none, none, none};
  walk<W>(0, n, f, [&](auto at, int j, Vec<W> v) { top[j] = larger(top[j], at.keep(v, least)); });
  Vec<W> v = top[0];
  for (int j = 1; j < unroll; ++j) v = larger(v, top[j]);
  W result = v[0];
  for (std::int64_t j = 1; j < lanes<W>; ++j) result = v[j] > result ? v[j] : result;
  return result;
}

/// e^x for x <= 88, within 1.5 ulp; results below 2^-126.5 are 0, NaN stays NaN. Half the work of fast::exp,
/// which also handles denormals and overflow: a softmax needs neither.
FERRITE_INLINE Vec<float> exp(Vec<float> x) {
  // From -88.02 down n becomes -127 and 2^n, by its bits, 0.
  x = larger(Vec<float>{} - 88.03f, x);
  const Vec<float> shifter = Vec<float>{} + (0x1.8p23f + 127.0f);  // leaves n + 127 in the lowest bits
  const Vec<float> shifted = x * 1.44269504f + shifter;
  const Vec<float> n = shifted - shifter;
  const Vec<float> r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // |r| <= ln 2 / 2
  const Vec<float> r2 = r * r;
  // e^r = 1 + r + r^2 (...), a minimax fit; in this order it has the shortest chain.
  const Vec<float> high = r * 8.368796652e-3f + 4.166839584e-2f;
  const Vec<float> low = r * 0.1666651997f + 0.499999934f;
  const Vec<float> tail = r2 * (r2 * 1.381443018e-3f + high) + low;
  using Bits = typename VectorOf<std::uint32_t>::type;
  const auto power = (Vec<float>)((Bits)shifted << 23);
  return power * (r2 * tail + r) + power;
}
FERRITE_INLINE Vec<double> exp(Vec<double> x) {
  for (std::int64_t j = 0; j < lanes<double>; ++j) x[j] = std::exp(x[j]);
  return x;
}

/// 2^x for x <= 127, within 1.5 ulp; results below 2^-126.5 are 0, NaN stays NaN. Half as long as exp takes,
/// where a processor splits numbers into whole and rest: a kernel that can multiply by log2(e) on the way
/// saves that.
FERRITE_INLINE Vec<float> exp2(Vec<float> x) {
#if defined(__AVX512DQ__)
  const auto r = (Vec<float>)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT);  // of infinity, 0
  const Vec<float> n = x - r;
#else
  x = larger(Vec<float>{} - 127.0f, x);  // from there down n is -127 and 2^n, by its bits, 0
  const Vec<float> shifter = Vec<float>{} + (0x1.8p23f + 127.0f);  // leaves n + 127 in the lowest bits
  const Vec<float> shifted = x + shifter, r = x - (shifted - shifter);
#endif
  // 2^r = 1 + r q(r) for |r| <= 1/2, a minimax fit.
  const Vec<float> r2 = r * r;
  const Vec<float> low = r * 0.240226477f + 0.693147182f;
  const Vec<float> middle = r * 9.61843692e-3f + 5.55033237e-2f;
  const Vec<float> high = r * 1.53533620e-4f + 1.33988739e-3f;
  const Vec<float> q = r2 * (r2 * high + middle) + low;
#if defined(__AVX512DQ__)
  const auto is_normal = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-126.5f), _CMP_NLT_UQ);
  return (Vec<float>)_mm512_maskz_scalef_ps(is_normal, (__m512)(r * q + 1), (__m512)n);
#else
  using Bits = typename VectorOf<std::uint32_t>::type;
  const auto power = (Vec<float>)((Bits)shifted << 23);
  return power * r * q + power;
#endif
}
FERRITE_INLINE Vec<double> exp2(Vec<double> x) {
  for (std::int64_t j = 0; j < lanes<double>; ++j) x[j] = std::exp2(x[j]);
  return x;
}

template <class W, class F>
FERRITE_INLINE bool has_nan(std::int64_t n, F&& f) {
  const Vec<W> zero{}, one = zero + 1;
  return sum<W>(n, [&](auto at) { return f(at) != f(at) ? one : zero; }) > 0;
}

/// log(sum(exp(f))) without overflow. An infinite maximum is the result itself.
template <class W, class F>
FERRITE_INLINE W logsumexp(std::int64_t n, F&& f) {
  const W top = max<W>(n, f);
  if (std::isfinite(top)) return std::log(sum<W>(n, [&](auto at) { return exp(f(at) - top); })) + top;
  return has_nan<W>(n, f) ? std::numeric_limits<W>::quiet_NaN() : top;
}

}  // namespace ferrite::simd
