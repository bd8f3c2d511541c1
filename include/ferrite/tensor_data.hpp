// Between tensors and host memory: from_vector, to_vector, item, to(backend), printing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ferrite/ops/copy.hpp"
#include "ferrite/tensor.hpp"

namespace ferrite {
namespace detail {

/// The backend that owns the memory, below all decorators.
template <class B>
auto& kernel_backend(B& b) {
  if constexpr (RunsKernels<B>)
    return b;
  else
    return kernel_backend(b.inner());
}
template <class P>
const Array& kernel_array(const P& primitive) {
  if constexpr (std::same_as<P, Array>)
    return primitive;
  else
    return kernel_array(primitive.value);
}
template <class B>
typename B::Primitive wrap_array(B& b, Array array) {
  if constexpr (RunsKernels<B>)
    return array;
  else
    return b.wrap(wrap_array(b.inner(), std::move(array)));
}

/// The array in the memory of the backend that runs kernels, its value computed: for those who go round the
/// backend.
template <class B>
Array array_in_memory(B& b, const Array& array) {
  if constexpr (requires { b.settled(array); })
    return b.settled(array);
  else if constexpr (requires { b.inner(); })
    return array_in_memory(b.inner(), array);
  else
    return array;
}

/// Converts `count` elements between dtypes on the host.
FERRITE_API void convert_elements(DType from, const void* source, DType to, void* target, std::int64_t count);
/// NumPy's look for dense row-major data.
FERRITE_API std::string format_elements(const Meta& meta, const void* data);
[[noreturn]] FERRITE_API void throw_count_mismatch(std::size_t given, const Shape& shape);

}  // namespace detail

/// Uninitialised memory, for those who fill it at once. FERRITE_POISON=1 shows elements nobody wrote.
template <class B>
Tensor<B> empty(B& b, const Shape& shape, DType dtype = DType::f32) {
  check_extents("empty", shape);
  return {b, detail::wrap_array(b, detail::kernel_backend(b).allocate({shape, dtype}))};
}
/// A tensor with the bytes at `data`: dense, row-major, of the given shape and dtype.
template <class B>
Tensor<B> from_bytes(B& b, const Meta& meta, const void* data) {
  check_extents("from_bytes", meta.shape);
  auto& owner = detail::kernel_backend(b);
  Array array = owner.allocate(meta);
  owner.copy_from_host(array, data);
  return {b, detail::wrap_array(b, std::move(array))};
}
template <class B, class T>
Tensor<B> from_span(B& b, std::span<const T> values, const Shape& shape) {
  check_extents("from_span", shape);
  if (static_cast<std::int64_t>(values.size()) != shape.numel())
    detail::throw_count_mismatch(values.size(), shape);
  return from_bytes(b, {shape, dtype_of<T>}, values.data());
}
/// Element type and dtype go together (float: f32, std::int64_t: i64, ...); see DTypeOf.
template <class B, class T>
Tensor<B> from_vector(B& b, const std::vector<T>& values, const Shape& shape) {
  if constexpr (std::same_as<T, bool>) {
    const std::vector<std::uint8_t> bytes(values.begin(), values.end());
    if (static_cast<std::int64_t>(bytes.size()) != shape.numel())
      detail::throw_count_mismatch(bytes.size(), shape);
    return from_bytes(b, {shape, DType::bool_}, bytes.data());
  } else {
    return from_span(b, std::span<const T>(values), shape);
  }
}
/// One axis, as long as the vector.
template <class B, class T>
Tensor<B> from_vector(B& b, const std::vector<T>& values) {
  return from_vector(b, values, {static_cast<std::int64_t>(values.size())});
}
/// A 0-d tensor.
template <class B>
Tensor<B> scalar(B& b, Scalar value, DType dtype = DType::f32) {
  return full(b, {}, value, dtype);
}

/// All elements, dense and row-major, in the tensor's own dtype.
template <class B>
std::vector<std::byte> to_bytes(const Tensor<B>& x) {
  auto& owner = detail::kernel_backend(x.backend());
  const Array dense = detail::contiguous(owner, detail::kernel_array(x.primitive()));
  std::vector<std::byte> bytes(dense.meta().bytes());
  owner.copy_to_host(dense, bytes.data());
  return bytes;
}

template <class B>
template <class T>
std::vector<T> Tensor<B>::to_vector() const {
  const std::vector<std::byte> bytes = to_bytes(*this);
  const auto count = static_cast<std::size_t>(numel());
  if constexpr (std::same_as<T, bool>) {
    std::vector<std::uint8_t> flags(count);
    detail::convert_elements(dtype(), bytes.data(), DType::bool_, flags.data(), numel());
    return std::vector<bool>(flags.begin(), flags.end());
  } else {
    std::vector<T> values(count);
    detail::convert_elements(dtype(), bytes.data(), dtype_of<T>, values.data(), numel());
    return values;
  }
}

template <class B>
template <class T>
T Tensor<B>::item() const {
  if (numel() != 1) throw ShapeError("[item] " + to_string(shape()) + ": needs a tensor of one element");
  return to_vector<T>()[0];
}

/// A copy on another backend (and its device), without history.
template <class To, class From>
Tensor<To> to(To& backend, const Tensor<From>& x) {
  const std::vector<std::byte> bytes = to_bytes(x);
  return from_bytes(backend, x.meta(), bytes.data());
}

template <class B>
std::string to_string(const Tensor<B>& x) {
  return detail::format_elements(x.meta(), to_bytes(x).data());
}

}  // namespace ferrite
