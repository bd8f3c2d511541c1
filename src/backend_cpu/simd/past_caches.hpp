// Stores that go around the caches, for results that the caches could not hold (cpu::exceeds_caches). A
// common store reads the line that it writes to from memory first; these do not, which saves a third of the
// traffic of y = f(x). Arm processors find such streams by themselves, so there they are common stores.
#pragma once

#include <cstdint>
#include <cstring>

#include "ferrite/core/dtype.hpp"
#include "math/vector_width.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ferrite::simd {

/// Stores a vector at a multiple of its size. Other threads may read it after the end of a cpu::Streamed.
template <class V>
FERRITE_INLINE void store_past_caches(void* target, V v) {
  static_assert(sizeof(V) == vector_bytes);
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(target), (__m512i)v);
#elif defined(__AVX__)
  _mm256_stream_si256(static_cast<__m256i*>(target), (__m256i)v);
#elif defined(__SSE2__)
  _mm_stream_si128(static_cast<__m128i*>(target), (__m128i)v);
#else
  std::memcpy(target, &v, sizeof v);
#endif
}

}  // namespace ferrite::simd
