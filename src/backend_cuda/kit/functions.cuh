// The elementwise functions on the GPU: the formulas of ferrite/ops/formulas.hpp in float, double or
// std::int64_t. Elementary functions are CUDA's (at most 2 ulp in f32, 4 for erfc); where the version here
// differs from them, a comment says why.
#pragma once

#include "backend_cuda/kit/elementwise.cuh"
#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite::cuda {

using op::BinaryFn;
using op::UnaryFn;

/// 1 / x for x in [1, 2], below 1 ulp: a full division costs three times as much, half of what sigmoid and
/// gelu may take at the speed of memory.
FERRITE_FORMULA float inverse_near_one(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return fmaf(r, fmaf(-x, r, 1.0f), r);
}
FERRITE_FORMULA double inverse_near_one(double x) { return 1 / x; }

/// Also __host__ functions, which nobody calls: nvcc would warn about formulas that call others.
template <class C>
struct DeviceMath : formulas::Standard<C> {
  FERRITE_FORMULA C rsqrt(C x) const { return static_cast<C>(::rsqrt(x)); }
  FERRITE_FORMULA C sigmoid(C x) const {
    const C e = std::exp(-std::abs(x)), r = inverse_near_one(1 + e);
    return x < 0 ? e * r : r;
  }
};
template <>
struct DeviceMath<std::int64_t> : formulas::Standard<std::int64_t> {};

/// For results of 16 bits.
struct CoarseMath : DeviceMath<float> {
  /// Within 2^-20: twice as fast, which keeps gelu of bf16 at the speed of memory.
  FERRITE_FORMULA float sigmoid(float x) const {
    float e, r;
    asm("ex2.approx.f32 %0, %1;" : "=f"(e) : "f"(-std::abs(x) * 1.44269504f));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1 + e));
    return x < 0 ? e * r : r;
  }
};

// The sets of functions, as elementwise.cuh takes them.

struct UnarySet {
  template <class In>
  using Result = ComputeType<In>;
  template <UnaryFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double alpha, In x) {
    using C = ComputeType<In>;
    using M = std::conditional_t<is_16_bit<In>, CoarseMath, DeviceMath<C>>;
    return formulas::unary(M{}, fn, convert_to<C>(x), static_cast<C>(alpha));
  }
};

struct UnaryBackwardSet {
  template <class In, class>
  using Result = ComputeType<In>;
  template <UnaryFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double alpha, In saved, In dy) {
    using C = ComputeType<In>;
    return formulas::backward(DeviceMath<C>{}, fn, convert_to<C>(saved), convert_to<C>(dy),
                              static_cast<C>(alpha));
  }
};

struct BinarySet {
  template <class In, class>
  using Result = ComputeType<In>;
  template <BinaryFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double, In a, In b) {
    using C = ComputeType<In>;
    return formulas::binary(DeviceMath<C>{}, fn, convert_to<C>(a), convert_to<C>(b));
  }
};

/// A choice or a copy computes nothing: elements pass unchanged.
struct WhereSet {
  template <class, class In, class>
  using Result = In;
  template <int, class Condition, class In>
  __device__ __forceinline__ static In evaluate(double, Condition condition, In a, In b) {
    return condition != Condition{} ? a : b;
  }
};

struct CopySet {
  static constexpr bool takes_storage = true;
  template <class In>
  using Result = In;
  template <int, class In>
  __device__ __forceinline__ static In evaluate(double, In x) {
    return x;
  }
};

}  // namespace ferrite::cuda
