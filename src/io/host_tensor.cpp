// Creation and checks of HostTensor.
#include "ferrite/io/host_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

constexpr std::align_val_t alignment{64};

void check_size(const char* op, DType dtype, const Shape& shape, std::size_t bytes) {
  check_extents(op, shape);
  const std::size_t needed = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  if (bytes != needed) {
    throw ShapeError(fmt::format("[{}] {} bytes for {} of shape {}: {} are needed", op, bytes,
                                 to_string(dtype), to_string(shape), needed));
  }
}

}  // namespace

std::pair<HostTensor, std::span<std::byte>> HostTensor::allocate(DType dtype, const Shape& shape) {
  check_extents("HostTensor::make", shape);
  const std::size_t size = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  auto* data = static_cast<std::byte*>(::operator new(size, alignment));
  HostTensor tensor;
  tensor.owner_ = std::shared_ptr<const void>(data, [](void* p) { ::operator delete(p, alignment); });
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.data_ = data;
  return {std::move(tensor), {data, size}};
}

HostTensor HostTensor::copy_of(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  check_size("HostTensor::copy_of", dtype, shape, bytes.size());
  return make(dtype, shape,
              [&](std::span<std::byte> out) { std::copy(bytes.begin(), bytes.end(), out.begin()); });
}

HostTensor HostTensor::view(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                            std::shared_ptr<const void> owner) {
  check_size("HostTensor::view", dtype, shape, bytes.size());
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(dtype) != 0) {
    throw ValueError(fmt::format("[HostTensor::view] bytes at {}: {} needs an address divisible by {}",
                                 static_cast<const void*>(bytes.data()), to_string(dtype), size_of(dtype)));
  }
  HostTensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.data_ = bytes.data();
  tensor.owner_ = std::move(owner);
  return tensor;
}

void HostTensor::check_dtype(DType asked) const {
  if (asked == dtype_) return;
  throw DTypeError(fmt::format("[HostTensor::as] {} asked of a tensor of {}: the types must be equal",
                               to_string(asked), to_string(dtype_)));
}

}  // namespace ferrite
