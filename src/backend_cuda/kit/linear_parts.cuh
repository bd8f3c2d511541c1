// Shared by the kernels of linear layers with few rows: operands that lie in packs, weights of 8 bits, sums
// over a warp, and activations by name.
#pragma once

#include "backend_cuda/kit/functions.cuh"
#include "backend_cuda/kit/packs.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/ops/linear.hpp"

namespace ferrite::cuda {

/// Dense, and at a multiple of 16 bytes.
inline Array in_packs(Cuda& cuda, const Array& x) {
  const Array elements = dense(cuda, x);
  if (is_aligned(elements.data(), 16)) return elements;
  const Array copy = cuda.allocate(elements.meta());
  copy_into(cuda, elements, copy);
  return copy;
}

/// Weight `which` of four that lie in a word. With its sign flipped a byte is unsigned: put below the bits of
/// 2^23 it is 2^23 + 128 + weight, exactly. The GPU converts integers at a quarter of that speed.
__device__ __forceinline__ float weight_of(std::uint32_t four, unsigned which) {
  return __uint_as_float(__byte_perm(four ^ 0x80808080u, 0x4b000000u, 0x7540u + which)) - 8388736.0f;
}

/// For every lane, added in one order.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

template <class Math>
__device__ __forceinline__ float activate(Math math, Activation activation, float x) {
  using op::UnaryFn;
  switch (activation) {
    case Activation::relu:
      return formulas::unary(math, UnaryFn::relu, x, 1.0f);
    case Activation::gelu:
      return formulas::unary(math, UnaryFn::gelu_tanh, x, 1.0f);
    case Activation::silu:
      return formulas::unary(math, UnaryFn::silu, x, 1.0f);
    case Activation::tanh:
      return formulas::unary(math, UnaryFn::tanh, x, 1.0f);
    case Activation::sigmoid:
      return formulas::unary(math, UnaryFn::sigmoid, x, 1.0f);
    default:
      return x;
  }
}

}  // namespace ferrite::cuda
