// What the host side of every CUDA op needs: the scope of a call, dense copies, destinations. Layouts that a
// kernel does not take end here.
#pragma once

#include <string>
#include <string_view>

#include "backend_cuda/device_context.hpp"
#include "ferrite/backend/cuda.hpp"

namespace ferrite::cuda {

/// First line of every run(): the op's GPU is current, its name stands in memory reports and errors, and a
/// launch that was refused is thrown at the end (finish, the last line).
class Call {
 public:
  Call(const Cuda& cuda, std::string_view op)
      : context_(cuda.context()), op_(op), guard_(context_.index()), scope_(op) {}

  DeviceContext& context() const { return context_; }
  cudaStream_t stream() const { return context_.stream(); }
  std::string_view op() const { return op_; }
  /// After the last launch.
  void finish() const { check_launch(op_); }

 private:
  DeviceContext& context_;
  std::string_view op_;
  DeviceGuard guard_;
  OpScope scope_;
};

/// Device memory for the length of one call: reused by later work of the stream.
template <class T>
class Scratch {
 public:
  Scratch(const Call& call, std::int64_t count)
      : buffer_(call.context().allocate(static_cast<std::size_t>(count) * sizeof(T))) {}
  T* data() const { return static_cast<T*>(buffer_->data()); }

 private:
  std::shared_ptr<Buffer> buffer_;
};

/// Converts and copies (or adds) between any two layouts of one shape.
void copy_into(Cuda& cuda, const Array& from, const Array& to, bool add = false);
/// The elements in row-major order: x itself if they lie so already and have the dtype, else a copy.
Array dense(Cuda& cuda, const Array& x, DType dtype);
inline Array dense(Cuda& cuda, const Array& x) { return dense(cuda, x, x.dtype()); }
/// x with `axis` moved to the end: a view.
Array axis_last(const Array& x, int axis);

/// An output as a dense array: itself where it is one, else a temporary that commit() puts in place.
class Destination {
 public:
  Destination(Cuda& cuda, const Array& out, bool add);

  const Array& array() const { return dense_; }
  /// True if the kernel has to add to what array() holds.
  bool add() const { return add_ && !temporary_; }
  void commit();

 private:
  Cuda& cuda_;
  Array out_, dense_;
  bool add_, temporary_;
};

/// What a kernel reports when it meets an index out of range; it then works on as if the index were valid.
/// Thrown as ValueError by the next host copy or synchronize().
struct IndexFault {
  unsigned long long op;  // address of the op's name on the host; 0: no fault
  unsigned long long op_length;
  long long index, extent;
  long long position;  // of the index among all, counted from 1; 0: the kernel does not say
};
/// What the Cpu's error says of the same index, but for the axis, which kernels do not know.
FERRITE_API std::string describe(const IndexFault& fault);
/// Where kernels of this GPU report, in host memory that the GPU sees.
IndexFault* index_fault(DeviceContext& context);

}  // namespace ferrite::cuda
