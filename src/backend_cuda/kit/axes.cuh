// Finds the i-th element of a collapsed layout in device code, for several operands at once and 64-bit sizes.
#pragma once

#include <cstdint>
#include <span>

#include "ferrite/core/layout.hpp"

namespace ferrite::cuda {

/// Divides non-negative numbers by a number that the host knows, as a multiplication (Granlund and
/// Montgomery): a 64-bit division is a call of some 70 instructions.
struct Divider {
  std::int64_t divisor = 1;
  std::uint64_t multiplier = 1;
  int shift = 0;

  Divider() = default;
  explicit Divider(std::int64_t d) : divisor(d) {
    __extension__ using Wide = unsigned __int128;
    const auto n = static_cast<std::uint64_t>(d);
    while ((std::uint64_t{1} << shift) < n) ++shift;
    multiplier = static_cast<std::uint64_t>((Wide{(std::uint64_t{1} << shift) - n} << 64) / n + 1);
  }
#ifdef __CUDACC__
  __device__ __forceinline__ std::int64_t quotient(std::int64_t n) const {
    const auto bits = static_cast<std::uint64_t>(n);
    return static_cast<std::int64_t>((__umul64hi(bits, multiplier) + bits) >> shift);
  }
#endif
};

/// Axes of one index space, longest stride first, with a stride for each operand.
template <int operands>
struct Axes {
  int rank = 0;
  Divider extent[max_rank];
  std::int64_t stride[operands][max_rank] = {};

  Axes() = default;
  explicit Axes(const LoopNest& nest) {
    for (int i = 0; i < nest.rank; ++i) {
      std::int64_t strides[operands];
      for (int k = 0; k < operands; ++k) strides[k] = nest.stride[k][i];
      push_back(nest.extent[i], strides);
    }
  }
  /// The chosen axes (a bit mask) of a shape, in their order, with neighbours merged if every operand allows
  /// it: the i-th element is the i-th in row-major order.
  Axes(const Shape& shape, const Shape* const (&strides)[operands], unsigned chosen) {
    std::int64_t extents[max_rank], steps[max_rank][operands];
    int count = 0;
    for (int i = 0; i < shape.rank(); ++i) {
      if (!(chosen >> i & 1u) || shape[i] == 1) continue;
      bool merges = count > 0;
      for (int k = 0; merges && k < operands; ++k)
        merges = steps[count - 1][k] == (*strides[k])[i] * shape[i];
      if (merges)
        extents[count - 1] *= shape[i];
      else
        extents[count++] = shape[i];
      for (int k = 0; k < operands; ++k) steps[count - 1][k] = (*strides[k])[i];
    }
    for (int i = 0; i < count; ++i) push_back(extents[i], steps[i]);
    if (count == 0) rank = 1;
  }
  void push_back(std::int64_t count, std::span<const std::int64_t, operands> strides) {
    if (rank > 0) extent[rank] = Divider(count);  // the first axis takes the rest of the index
    for (int k = 0; k < operands; ++k) stride[k][rank] = strides[static_cast<std::size_t>(k)];
    ++rank;
  }

#ifdef __CUDACC__
  struct Offsets {
    std::int64_t of[operands];
  };
  /// Of the element with this index; the last axis turns fastest.
  __device__ __forceinline__ Offsets offsets(std::int64_t index) const {
    Offsets result = {};
    for (int i = rank - 1; i > 0; --i) {
      const std::int64_t quotient = extent[i].quotient(index);
      const std::int64_t at = index - quotient * extent[i].divisor;
#pragma unroll
      for (int k = 0; k < operands; ++k) result.of[k] += at * stride[k][i];
      index = quotient;
    }
#pragma unroll
    for (int k = 0; k < operands; ++k) result.of[k] += index * stride[k][0];
    return result;
  }
  __device__ __forceinline__ std::int64_t offset(std::int64_t index) const requires(operands == 1) {
    return offsets(index).of[0];
  }
#endif
};

}  // namespace ferrite::cuda
