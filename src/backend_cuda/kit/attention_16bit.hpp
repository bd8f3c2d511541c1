// Attention of f16 and bf16 on tensor cores (kernels/attention_16bit.cuh): what the ops call.
#pragma once

#include "backend_cuda/kit/attention_problem.cuh"
#include "backend_cuda/kit/shared_memory.hpp"

namespace ferrite::cuda::attention {

/// T is the device type of all arrays but lse.
template <class T>
void attend(const Call& call, const Problem& p, const Array& q, const Array& k, const Array& v,
            const Array& o, const Array& lse);

/// lse and delta are dense. dq, dk and dv are added to where `mask` says so.
template <class T>
void attend_backward(const Call& call, const Problem& p, const Array& grad, const Array& q, const Array& k,
                     const Array& v, const float* lse, const float* delta, const Array& dq, const Array& dk,
                     const Array& dv, Accumulate mask);

/// Shared memory that a block needs for heads of this many columns, at most 256.
constexpr std::size_t tensor_core_bytes(std::int64_t columns) { return columns <= 128 ? 90'000 : 102'000; }

/// Whether rows can be loaded in packs of 8: dense, and at multiples of 16 bytes.
inline bool lies_in_packs(const Array& x) {
  const Shape& strides = x.layout().strides;
  return strides[3] == 1 && strides[0] % 8 == 0 && strides[1] % 8 == 0 && strides[2] % 8 == 0 &&
         reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0;
}

/// A kernel whose blocks have `groups` parts, with this much shared memory for each, for `total` parts.
template <class Kernel, class... Arguments>
void launch_groups(const Call& call, Kernel kernel, std::int64_t total, int groups, int threads,
                   int bytes_per_group, const Arguments&... arguments) {
  if (total == 0) return;
  const int bytes = groups * bytes_per_group;
  if (bytes > 48 << 10) allow_all_shared_memory(call, reinterpret_cast<const void*>(kernel));
  kernel<<<static_cast<unsigned>(divide_up(total, groups)), threads, static_cast<std::size_t>(bytes),
           call.stream()>>>(arguments..., total);
}

}  // namespace ferrite::cuda::attention
