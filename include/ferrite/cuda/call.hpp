// For the host side of every CUDA kernel: the scope of a call, scratch memory, dense copies, destinations. It
// deals with layouts that a kernel does not take.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <string_view>

#include "ferrite/backend/cuda.hpp"
#include "ferrite/cuda/check.hpp"

namespace ferrite::cuda {

class DeviceContext;

/// First line of every run(): makes the op's GPU current, puts the op's name into memory reports and errors,
/// and makes finish(), the last line, throw if a launch was refused.
class FERRITE_API Call {
 public:
  Call(const Cuda& cuda, std::string_view op);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  DeviceContext& context() const { return context_; }
  /// The stream for the kernels of this call: the one of all kernels of this GPU, or, inside work aside
  /// (backend/aside.hpp), another. So a kernel keeps nothing on the device from call to call.
  cudaStream_t stream() const { return stream_; }
  std::string_view op() const { return op_; }
  /// Of the GPU: its processors, its shared memory.
  const cudaDeviceProp& properties() const;
  /// Device memory that later work of the stream may reuse as soon as the pointer is gone.
  std::shared_ptr<Buffer> allocate(std::size_t bytes) const;
  /// After the last launch.
  void finish() const { check_launch(op_); }

 private:
  DeviceContext& context_;
  cudaStream_t stream_;
  std::string_view op_, outer_op_;
  int previous_device_;  // to make current again, if not negative
};

/// Device memory for the length of one call: reused by later work of the stream.
template <class T>
class Scratch {
 public:
  Scratch(const Call& call, std::int64_t count)
      : buffer_(call.allocate(static_cast<std::size_t>(count) * sizeof(T))) {}
  T* data() const { return static_cast<T*>(buffer_->data()); }

 private:
  std::shared_ptr<Buffer> buffer_;
};

/// Converts and copies (or adds) between any two layouts of one shape.
FERRITE_API void copy_into(Cuda& cuda, const Array& from, const Array& to, bool add = false);
/// The elements in row-major order and in this dtype: x itself if it is so already, else a copy.
FERRITE_API Array dense(Cuda& cuda, const Array& x, DType dtype);
inline Array dense(Cuda& cuda, const Array& x) { return dense(cuda, x, x.dtype()); }
/// x with `axis` moved to the end: a view.
FERRITE_API Array axis_last(const Array& x, int axis);

/// An output as a dense array: the output itself if it is dense, else a temporary that commit() copies into
/// place.
class FERRITE_API Destination {
 public:
  Destination(Cuda& cuda, const Array& out, bool add);

  const Array& array() const { return dense_; }
  /// True if the kernel has to add to the contents of array().
  bool add() const { return add_ && !temporary_; }
  void commit();

 private:
  Cuda& cuda_;
  Array out_, dense_;
  bool add_, temporary_;
};

/// A kernel reports this when it finds an index out of range; it then goes on as if the index were valid. The
/// next host copy or synchronize() throws it as a ValueError.
struct IndexFault {
  unsigned long long op;  // address of the op's name on the host; 0: no fault
  unsigned long long op_length;
  long long index, extent;
  long long position;  // of the index among all, counted from 1; 0: unknown
};
/// The Cpu's error message for the same index, without the axis, which kernels do not know.
FERRITE_API std::string describe(const IndexFault& fault);
/// Where kernels of this GPU report faults, in host memory that the GPU can access.
FERRITE_API IndexFault* index_fault(DeviceContext& context);

}  // namespace ferrite::cuda
