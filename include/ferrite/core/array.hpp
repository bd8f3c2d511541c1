// Array: an untyped strided view of a reference-counted buffer. Kernels receive Arrays, and an Array is the
// primitive of every backend that runs kernels.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "ferrite/core/dtype.hpp"
#include "ferrite/core/layout.hpp"
#include "ferrite/core/small_vector.hpp"

namespace ferrite {

enum class DeviceKind : std::uint8_t { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};
/// "cpu", "cuda:0"
FERRITE_API std::string to_string(Device device);

/// The account of an allocator: in_use counts live buffers and cached counts memory kept for reuse, both in
/// bytes, rounded up to whole blocks; allocations counts the calls.
struct MemoryStats {
  std::size_t in_use = 0;
  std::size_t peak = 0;
  std::size_t cached = 0;
  std::size_t allocations = 0;
};

class Buffer;

/// The source of buffers. Implementations are thread-safe and outlive every buffer.
class FERRITE_API Allocator {
 public:
  virtual ~Allocator() = default;
  virtual std::shared_ptr<Buffer> allocate(std::size_t bytes) = 0;
  virtual MemoryStats stats() const = 0;
  virtual void reset_peak() = 0;
  /// Gives cached memory back to the system.
  virtual void release_cache() = 0;
};

/// Host memory: 64-byte aligned, freed blocks kept by size class for reuse. FERRITE_POISON=1 fills fresh
/// memory with NaN patterns, so that an element nobody wrote becomes visible.
FERRITE_API Allocator& host_allocator();

class FERRITE_API Buffer {
 public:
  Buffer(void* data, std::size_t bytes, Device device) : data_(data), bytes_(bytes), device_(device) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  /// Counts in-place writes. A tensor saved for backward remembers the version it saw.
  std::uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

  /// A second buffer that follows this one on another backend (Parity in free-running mode).
  std::shared_ptr<Buffer> shadow;

 private:
  void* data_;
  std::size_t bytes_;
  Device device_;
  std::atomic<std::uint32_t> version_{0};
};

/// Shape and dtype of a tensor, without its data: the input of shape rules.
struct Meta {
  Shape shape;
  DType dtype = DType::f32;
  std::size_t bytes() const { return static_cast<std::size_t>(shape.numel()) * size_of(dtype); }
  friend bool operator==(const Meta&, const Meta&) = default;
};
/// "f32[2, 3]"
FERRITE_API std::string to_string(const Meta& meta);

class Array {
 public:
  Array() = default;
  Array(std::shared_ptr<Buffer> buffer, Layout layout, DType dtype)
      : buffer_(std::move(buffer)), layout_(layout), dtype_(dtype) {}

  bool defined() const { return buffer_ != nullptr; }
  const Layout& layout() const { return layout_; }
  const Shape& shape() const { return layout_.shape; }
  DType dtype() const { return dtype_; }
  Meta meta() const { return {layout_.shape, dtype_}; }
  Device device() const { return buffer_->device(); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  Array with_layout(Layout layout) const { return {buffer_, layout, dtype_}; }

  /// Pointer to the first element of the view (offset included).
  template <class T = std::byte>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(buffer_->data()) +
                                layout_.offset * static_cast<std::int64_t>(size_of(dtype_)));
  }
  /// True if nobody else holds the buffer, so that writing in place cannot be seen.
  bool is_unique() const { return buffer_.use_count() == 1; }

 private:
  std::shared_ptr<Buffer> buffer_;
  Layout layout_;
  DType dtype_ = DType::f32;
};

/// The bytes of a buffer from the first to the last that an array has, perhaps with gaps: [begin, end). Both
/// are 0 if it has no elements.
struct ByteRange {
  std::int64_t begin = 0, end = 0;
  bool meets(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};
FERRITE_API ByteRange byte_range(const Array& array);

}  // namespace ferrite
