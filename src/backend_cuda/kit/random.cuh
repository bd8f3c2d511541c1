// Philox on the GPU: the words of core/rng.hpp, several blocks for one thread, and groups of elements that
// are written at once.
#pragma once

#include "backend_cuda/runtime/capture.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/device.cuh"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/standard_math.hpp"

namespace ferrite::cuda {

/// Elements that a thread makes: whole blocks, and at least 16 bytes.
template <class T>
inline constexpr int group_size = sizeof(T) >= 4 ? 4 : 16 / sizeof(T);
template <class T>
using Group = Pack<T, group_size<T>>;

/// a * b + c with both operations rounded, as every backend does it.
__device__ __forceinline__ double multiply_then_add(double a, double b, double c) {
  return __dadd_rn(__dmul_rn(a, b), c);
}
__device__ __forceinline__ std::int64_t multiply_then_add(std::int64_t a, std::int64_t b, std::int64_t c) {
  const formulas::Standard<std::int64_t> m;  // wraps around
  return m.add(m.mul(a, b), c);
}

/// A sequence of random numbers whose stream advances with every replay of a captured step.
class Sequence {
 public:
  Sequence(const Call& call, RandomKey key) : key_(key), offset_(stream_offset(call, key)) {}
  __device__ __forceinline__ RandomKey key() const {
    return {key_.seed, key_.stream + (offset_ ? *offset_ : 0)};
  }

 private:
  RandomKey key_;
  const std::uint64_t* offset_;
};

/// Words first to first + n - 1 of a sequence, where word i is word i % 4 of block i / 4. `first` is a
/// multiple of 4.
template <int n>
struct Words {
  std::uint32_t word[n];

  __device__ __forceinline__ Words(RandomKey key, std::uint64_t first) {
#pragma unroll
    for (int b = 0; b < n / 4; ++b) {
      const Philox4x32::Block block = random_block(key, first / 4 + b);
#pragma unroll
      for (int i = 0; i < 4; ++i) word[4 * b + i] = block[i];
    }
  }
  /// 64 bits for element i.
  __device__ __forceinline__ std::uint64_t wide(int i) const {
    return word[2 * i] | std::uint64_t{word[2 * i + 1]} << 32;
  }
};

/// The first element of this thread's group.
template <class T>
__device__ __forceinline__ std::int64_t group_start() {
  return (std::int64_t{blockIdx.x} * block_threads + threadIdx.x) * group_size<T>;
}
template <class T>
std::int64_t group_blocks(std::int64_t count) {
  return divide_up(count, block_threads * group_size<T>);
}
template <class T>
bool is_group_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(Group<T>) == 0;
}

/// Elements `first` on of an array of `count`, as far as it goes.
template <class T>
__device__ __forceinline__ Group<T> load_group(const T* x, std::int64_t first, std::int64_t count,
                                               bool aligned) {
  if (aligned && first + group_size<T> <= count) return *reinterpret_cast<const Group<T>*>(x + first);
  Group<T> group{};
#pragma unroll
  for (int i = 0; i < group_size<T>; ++i)
    if (first + i < count) group.lane[i] = x[first + i];
  return group;
}
template <class T>
__device__ __forceinline__ void store_group(T* y, std::int64_t first, std::int64_t count, bool aligned,
                                            const Group<T>& group) {
  if (aligned && first + group_size<T> <= count) {
    *reinterpret_cast<Group<T>*>(y + first) = group;
    return;
  }
#pragma unroll
  for (int i = 0; i < group_size<T>; ++i)
    if (first + i < count) y[first + i] = group.lane[i];
}

}  // namespace ferrite::cuda
