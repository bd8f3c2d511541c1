// Elements as unsigned numbers in the same order, for sorting and selecting.
#pragma once

#include "backend_cuda/kit/packs.cuh"

namespace ferrite::cuda {

/// Unsigned, of the element's size.
template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, Word<sizeof(T) == 8 ? 4 : sizeof(T)>>;

/// In the order of the values: -0 equals 0, NaN is larger than everything.
template <class T>
__device__ __forceinline__ KeyOf<T> ascending_key(T value) {
  using Bits = KeyOf<T>;
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  Bits bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  if constexpr (std::is_unsigned_v<T>) {
    return bits;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Bits>(bits ^ sign);
  } else {
    const auto number = convert_to<Compute<T>>(value);
    const Bits mask = static_cast<Bits>((bits & sign ? ~Bits{0} : Bits{0}) | sign);
    const Bits key = number == 0 ? sign : static_cast<Bits>(bits ^ mask);  // no branches
    return number == number ? key : static_cast<Bits>(~Bits{0});
  }
}

/// The number whose ascending_key this is; 0 for both zeros.
template <class T, class Key>
__device__ __forceinline__ T from_ascending_key(Key key) {
  static_assert(std::is_floating_point_v<T> && sizeof(T) == sizeof(Key));
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  const Key bits = key & sign ? key ^ sign : ~key;
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace ferrite::cuda
