// Packs that are read and written with one access, even if their elements have no simple copy.
#pragma once

#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda {

template <int bytes>
struct WordOf;
template <>
struct WordOf<16> {
  using type = uint4;
};
template <>
struct WordOf<8> {
  using type = uint2;
};
template <>
struct WordOf<4> {
  using type = std::uint32_t;
};
template <>
struct WordOf<2> {
  using type = std::uint16_t;
};
template <>
struct WordOf<1> {
  using type = std::uint8_t;
};
/// An unsigned type of this size.
template <int bytes>
using Word = typename WordOf<bytes>::type;

/// `at` is aligned to the size of the pack.
template <int lanes, class T>
__device__ __forceinline__ Pack<T, lanes> load_pack(const T* at) {
  constexpr int bytes = lanes * static_cast<int>(sizeof(T));
  const auto word = *reinterpret_cast<const Word<bytes>*>(at);
  Pack<T, lanes> pack;
  __builtin_memcpy(&pack, &word, bytes);
  return pack;
}

template <int lanes, class T>
__device__ __forceinline__ void store_pack(T* at, const Pack<T, lanes>& pack) {
  constexpr int bytes = lanes * static_cast<int>(sizeof(T));
  Word<bytes> word;
  __builtin_memcpy(&word, &pack, bytes);
  *reinterpret_cast<Word<bytes>*>(at) = word;
}

/// Fetches the line at this address of the GPU's memory into the L2 cache. Nothing is read, so that it may
/// come before the wait for earlier kernels.
__device__ __forceinline__ void prefetch(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

/// True if packs of `bytes` bytes may start here.
inline bool is_aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

}  // namespace ferrite::cuda
