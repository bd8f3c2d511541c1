// Shared by all device code: the element types, conversions with the library's rules, vector accesses, and
// indices of collapsed layouts.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ferrite/core/dtype.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/core/layout.hpp"

namespace ferrite::cuda {

/// The device type of a host element type: Half is __half, BFloat16 is __nv_bfloat16.
template <class T>
struct DeviceTypeOf {
  using type = T;
};
template <>
struct DeviceTypeOf<Half> {
  using type = __half;
};
template <>
struct DeviceTypeOf<BFloat16> {
  using type = __nv_bfloat16;
};
template <class T>
using DeviceType = typename DeviceTypeOf<T>::type;

/// Calls f.template operator()<T>() with the device type of `dtype`, on the host or on the device.
template <class F>
constexpr void visit_device_type(DType dtype, F&& f) {
  visit_dtype(dtype, [&]<class T>() { f.template operator()<DeviceType<T>>(); });
}
/// The same for every dtype, those for storage too.
template <class F>
constexpr void visit_any_device_type(DType dtype, F&& f) {
  visit_any_dtype(dtype, [&]<class T>() { f.template operator()<DeviceType<T>>(); });
}
/// The same for floating dtypes only.
template <class F>
void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f.template operator()<double>();
    case DType::f16:
      return f.template operator()<__half>();
    case DType::bf16:
      return f.template operator()<__nv_bfloat16>();
    default:
      return f.template operator()<float>();
  }
}

template <class T>
inline constexpr bool is_16_bit = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
/// The type in which T is computed: float for the 16-bit types.
template <class T>
using Compute = std::conditional_t<is_16_bit<T>, float, T>;

/// Element conversion as ferrite::convert does it: to bool means "is not zero", float to integer truncates
/// (NaN gives 0, values beyond the range saturate), to 16-bit floats rounds to nearest even, once.
template <class To, class From>
__device__ __forceinline__ To convert_to(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, __half>) {
    return convert_to<To>(__half2float(x));
  } else if constexpr (std::is_same_v<From, __nv_bfloat16>) {
    return convert_to<To>(__bfloat162float(x));
  } else if constexpr (std::is_same_v<To, __half> || std::is_same_v<To, __nv_bfloat16>) {
    float narrow;
    if constexpr (sizeof(From) < 4 || std::is_same_v<From, float>) {
      narrow = static_cast<float>(x);
    } else {
      // Rounded to odd, so that the second rounding never sees a tie the first one made.
      const double exact = static_cast<double>(x);
      narrow = __double2float_rz(exact);
      if (static_cast<double>(narrow) != exact && ::isfinite(exact))
        narrow = __uint_as_float(__float_as_uint(narrow) | 1u);
    }
    if constexpr (std::is_same_v<To, __half>)
      return __float2half_rn(narrow);
    else
      return __float2bfloat16_rn(narrow);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = From{2} * static_cast<From>(std::numeric_limits<To>::max() / 2 + 1);
    if (!(x == x)) return To{0};
    if (x < low) return std::numeric_limits<To>::min();
    if (x >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// n elements that are read and written with one access of up to 16 bytes.
template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  T lane[n];
};
template <class T>
inline constexpr int pack_lanes = 16 / static_cast<int>(sizeof(T));

/// First line, but for prefetches, of kernels that start early (launch.hpp). It waits until earlier work in
/// the stream has ended and its results are visible. Meanwhile the GPU may set up the kernel after this one.
__device__ __forceinline__ void wait_for_earlier_kernels() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // before Hopper, kernels start in turn
  asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace ferrite::cuda
