// Index arrays in kernels: any integer dtype; negative indices count from the end; those out of range are
// reported and taken as 0.
#pragma once

#include <string>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// Where a kernel reports an index out of range.
struct FaultReport {
  IndexFault* fault;
  const char* op;
  std::size_t op_length;

  explicit FaultReport(const Call& call)
      : fault(index_fault(call.context())), op(call.op().data()), op_length(call.op().size()) {}

#ifdef __CUDACC__
  /// The first thread that finds the op word empty reports the fault. position: as in IndexFault.
  __device__ __noinline__ void operator()(std::int64_t index, std::int64_t extent,
                                          std::int64_t position = 0) const {
    if (atomicCAS(&fault->op, 0ull, reinterpret_cast<unsigned long long>(op)) != 0) return;
    fault->op_length = op_length;
    fault->index = index;
    fault->extent = extent;
    fault->position = position;
  }
#endif
};

struct Indices {
  const void* data;
  DType dtype;
  std::int64_t extent;  // of the axis that is indexed
  FaultReport report;

  /// `index` is not empty, so an axis of no elements is an error at once.
  Indices(const Call& call, const Array& index, std::int64_t axis_extent)
      : data(index.data()), dtype(index.dtype()), extent(axis_extent), report(call) {
    if (extent == 0)
      throw ValueError("[" + std::string(call.op()) + "] an axis of 0 elements: no index is in its range");
  }

#ifdef __CUDACC__
  /// As it lies in memory.
  __device__ __forceinline__ std::int64_t given_at(std::int64_t offset) const {
    if (dtype == DType::i64) return __ldg(static_cast<const long long*>(data) + offset);
    if (dtype == DType::i32) return __ldg(static_cast<const int*>(data) + offset);
    if (dtype == DType::u8) return __ldg(static_cast<const unsigned char*>(data) + offset);
    if (dtype == DType::u16) return __ldg(static_cast<const unsigned short*>(data) + offset);
    if (dtype == DType::u32) return __ldg(static_cast<const unsigned*>(data) + offset);
    return __ldg(static_cast<const signed char*>(data) + offset);
  }
  /// From 0 to extent - 1.
  __device__ __forceinline__ std::int64_t resolved(std::int64_t given) const {
    const std::int64_t index = given < 0 ? given + extent : given;
    if (index >= 0 && index < extent) return index;
    report(given, extent);
    return 0;
  }
  __device__ __forceinline__ std::int64_t at(std::int64_t offset) const { return resolved(given_at(offset)); }
#endif
};

}  // namespace ferrite::cuda
