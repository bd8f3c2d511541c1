// HostTensor: a tensor as files hold it, with no backend: dtype, shape and C-ordered bytes in host memory.
#pragma once

#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "ferrite/core/dtype.hpp"
#include "ferrite/core/shape.hpp"

namespace ferrite {

static_assert(std::endian::native == std::endian::little,
              "the file formats are read as little-endian memory");

/// An immutable value: copies share the bytes. The bytes are in its own memory or inside an object that it
/// keeps alive (a mapped file, a buffer). They are aligned for the dtype. Bool bytes are 0 or 1: the readers
/// check this, and anyone who makes a tensor from bytes must ensure it.
class FERRITE_API HostTensor {
 public:
  /// f32 of shape [0].
  HostTensor() : shape_{0} {}

  /// Copies `values`. Throws ShapeError unless there are shape.numel() of them.
  template <class T>
  static HostTensor from(std::span<const T> values, const Shape& shape) {
    return copy_of(dtype_of<T>, shape, std::as_bytes(values));
  }
  static HostTensor copy_of(DType dtype, const Shape& shape, std::span<const std::byte> bytes);

  /// No copy: `owner` keeps `bytes` alive and unchanged. Throws ShapeError if the size does not fit the
  /// shape, ValueError if the bytes are not aligned for the dtype.
  static HostTensor view(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner);

  /// Fresh memory (64-byte aligned, uninitialised); `fill(std::span<std::byte>)` must write all of it.
  template <class Fill>
  static HostTensor make(DType dtype, const Shape& shape, Fill&& fill) {
    auto [tensor, bytes] = allocate(dtype, shape);
    fill(bytes);
    return tensor;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t numel() const { return shape_.numel(); }
  std::span<const std::byte> bytes() const {
    return {data_, static_cast<std::size_t>(numel()) * size_of(dtype_)};
  }

  /// The elements in C order. Throws DTypeError unless T is the C++ type of dtype().
  template <class T>
  std::span<const T> as() const {
    check_dtype(dtype_of<T>);
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(numel())};
  }

 private:
  static std::pair<HostTensor, std::span<std::byte>> allocate(DType dtype, const Shape& shape);
  void check_dtype(DType asked) const;

  DType dtype_ = DType::f32;
  Shape shape_;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// The contents of a file with several tensors. Looked up by name, listed in name order.
using NamedTensors = std::map<std::string, HostTensor, std::less<>>;

}  // namespace ferrite
