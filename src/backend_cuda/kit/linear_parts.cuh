// Shared by the kernels of linear layers with few rows: operands that lie in packs, and activations by name.
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
