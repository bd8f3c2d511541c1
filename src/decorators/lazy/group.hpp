// The data of the recorder: buffers without memory, and groups of ops over one shape.
#pragma once

#include <memory>
#include <typeinfo>
#include <vector>

#include "ferrite/decorators/lazy_recorder.hpp"

namespace ferrite::lazy {

struct Group;

/// A buffer of Lazy. It gets memory when the first value is written.
class LazyBuffer final : public Buffer {
 public:
  LazyBuffer(std::size_t bytes, Device device) : Buffer(nullptr, bytes, device) {}

  std::shared_ptr<Buffer> memory;
  Group* writer = nullptr;  // the group that will write it, and the value of that group
  int value = -1;           // an op; reductions count from -1 down
  bool failed = false;      // the group that should write it could not (memory ran out)

  /// Throws BackendError for a value that was never computed.
  void check_computed() const;
};

/// By typeid: a dynamic_cast would take a tenth of the time of recording an op.
inline bool is_lazy(const Buffer* buffer) {
  return buffer != nullptr && typeid(*buffer) == typeid(LazyBuffer);
}
inline LazyBuffer* lazy_buffer(const Array& array) {
  Buffer* const buffer = array.buffer().get();
  return is_lazy(buffer) ? static_cast<LazyBuffer*>(buffer) : nullptr;
}

/// The array in real memory, which it must have.
inline Array in_memory(const Array& array) {
  const LazyBuffer* lazy = lazy_buffer(array);
  return lazy ? Array(lazy->memory, array.layout(), array.dtype()) : array;
}

/// An operand of a recorded op: the result of an earlier op of the group, or an array.
struct Operand {
  int op = -1;
  int array = -1;
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// A recorded op. `out` is where its result goes if it is wanted.
struct Recorded {
  RecordedOp op;
  SmallVector<Operand, 4> operands;  // those of the op, then, if it accumulates, what `out` held
  Array out;
  bool accumulates = false;
  bool overwritten = false;  // by a later op of the group
};

/// A reduction of the result of an op of the group.
struct Reduction {
  op::Reduce op;
  int of;        // an op
  Array out;     // not written yet
  int position;  // how many ops were recorded before it
};

/// Ops over one domain: a shape without its axes of extent 1. Operands and results have layouts over the
/// domain's axes; broadcast ones have strides of 0.
struct Group {
  Shape domain;
  std::vector<Recorded> ops;
  std::vector<Array> arrays;  // read: layouts over the domain
  std::vector<Reduction> reductions;
  Shape reduced_axes;  // of the domain; all reductions have the same

  bool reads(const Buffer* buffer) const {
    for (const Array& a : arrays)
      if (a.buffer().get() == buffer) return true;
    return false;
  }
};

inline Shape without_unit_axes(const Shape& shape) {
  Shape domain;
  for (const std::int64_t extent : shape)
    if (extent != 1) domain.push_back(extent);
  return domain;
}

/// The layout of `shape` over the domain, with `layout` broadcast to it first.
inline Layout over_domain(const Layout& layout, const Shape& shape) {
  const Layout wide = layout.shape == shape ? layout : layout.expand(shape);
  Layout result;
  result.offset = wide.offset;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    result.shape.push_back(shape[i]);
    result.strides.push_back(wide.strides[i]);
  }
  return result;
}

inline bool same_places(const Layout& a, const Layout& b) {
  return a.offset == b.offset && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace ferrite::lazy
