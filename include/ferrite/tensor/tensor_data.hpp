// Transfer between tensors and host memory: from_vector, to_vector, item, to(backend), printing.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/indexing.hpp"
#include "ferrite/tensor/tensor.hpp"

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

/// The computed array in the memory of the backend that runs kernels, for code that bypasses the backend.
template <class B>
Array array_in_memory(B& b, const Array& array) {
  if constexpr (requires { b.settled(array); })
    return b.settled(array);
  else if constexpr (requires { b.inner(); })
    return array_in_memory(b.inner(), array);
  else
    return array;
}

/// A copy of an array of a GPU, on this backend's GPU. Undefined if the backend cannot make one.
template <class B>
Array copy_between_gpus(B& b, const Array& array) {
  if constexpr (requires { b.copy_between_gpus(array); }) {
    return b.copy_between_gpus(array);
  } else if constexpr (requires { b.copy_from_device(array); }) {
    if (b.device().kind == DeviceKind::cuda) return b.copy_from_device(array);
  }
  return {};
}

/// Converts `count` elements between dtypes on the host.
FERRITE_API void convert_elements(DType from, const void* source, DType to, void* target, std::int64_t count);
/// Dense row-major data, printed like NumPy.
FERRITE_API std::string format_elements(const Meta& meta, const void* data);
/// Throws ShapeError unless the shape has that many elements.
FERRITE_API void check_count(std::string_view function, std::size_t values, const Shape& shape);
FERRITE_API std::ostream& write(std::ostream& out, std::string_view text);

template <class T>
concept Element = requires {
  DTypeOf<T>::value;
};
/// The dtype of a vector's elements, or a one-line error that lists the valid types.
template <class T>
constexpr DType element_dtype() {
  static_assert(Element<T>,
                "elements are float, double, int, long, long long (i64), std::uint8_t, bool, Half, BFloat16, "
                "std::int8_t, std::uint16_t or std::uint32_t: "
                "convert others, as in std::vector<std::int64_t>(v.begin(), v.end())");
  if constexpr (Element<T>)
    return dtype_of<T>;
  else
    return DType::f32;
}

}  // namespace detail

/// Uninitialised memory, for callers that fill it at once. FERRITE_POISON=1 exposes elements nobody wrote.
template <class B>
Tensor<B> empty(B& b, const Shape& shape, DType dtype = DType::f32) {
  check_extents("empty", shape);
  return {b, detail::wrap_array(b, detail::allocate_for(detail::kernel_backend(b), "empty", {shape, dtype}))};
}
namespace detail {
/// from_bytes, under the name of the function that was called.
template <class B>
Tensor<B> upload(B& b, std::string_view function, const Meta& meta, const void* data) {
  check_extents(function, meta.shape);
  auto& owner = kernel_backend(b);
  Array array = allocate_for(owner, function, meta);
  owner.copy_from_host(array, data);
  return {b, wrap_array(b, std::move(array))};
}
/// `values` is a vector or a span.
template <class B, class Values>
Tensor<B> from_values(B& b, std::string_view function, const Values& values, const Shape& shape) {
  constexpr DType dtype = element_dtype<typename Values::value_type>();
  check_extents(function, shape);
  check_count(function, values.size(), shape);
  if constexpr (std::same_as<Values, std::vector<bool>>) {
    const std::vector<std::uint8_t> bytes(values.begin(), values.end());
    return upload(b, function, {shape, dtype}, bytes.data());
  } else {
    return upload(b, function, {shape, dtype}, values.data());
  }
}
}  // namespace detail

/// A tensor with the bytes at `data`: dense, row-major, of the given shape and dtype.
template <class B>
Tensor<B> from_bytes(B& b, const Meta& meta, const void* data) {
  return detail::upload(b, "from_bytes", meta, data);
}
/// The values of a span, row-major, of the dtype that goes with T (see from_vector).
template <class B, class T>
Tensor<B> from_span(B& b, std::span<const T> values, const Shape& shape) {
  return detail::from_values(b, "from_span", values, shape);
}
/// The element type determines the dtype (float: f32, double: f64, std::int64_t: i64, ...; see DTypeOf).
/// Write {1.f, 2.f}, or cast, if you want f32.
template <class B, class T>
Tensor<B> from_vector(B& b, const std::vector<T>& values, const Shape& shape) {
  return detail::from_values(b, "from_vector", values, shape);
}
/// One axis, as long as the vector.
template <class B, class T>
Tensor<B> from_vector(B& b, const std::vector<T>& values) {
  return from_vector(b, values, {static_cast<std::int64_t>(values.size())});
}
/// The same for values written in braces: from_vector(b, {1.f, 2.f}).
template <class B, class T>
Tensor<B> from_vector(B& b, std::initializer_list<T> values, const Shape& shape) {
  return detail::from_values(b, "from_vector", std::vector<T>(values), shape);
}
template <class B, class T>
Tensor<B> from_vector(B& b, std::initializer_list<T> values) {
  return from_vector(b, values, {static_cast<std::int64_t>(values.size())});
}
/// A matrix by rows: from_vector(b, {{1.f, 2.f}, {3.f, 4.f}}). Rows of different lengths are a ShapeError.
template <class B, class T>
Tensor<B> from_vector(B& b, std::initializer_list<std::initializer_list<T>> rows) {
  const std::size_t columns = rows.size() > 0 ? rows.begin()->size() : 0;
  std::vector<T> values;
  for (const std::initializer_list<T>& row : rows) {
    if (row.size() != columns)
      throw ShapeError("[from_vector] row " + std::to_string(&row - rows.begin()) + " has " +
                       std::to_string(row.size()) + " values: the first has " + std::to_string(columns));
    values.insert(values.end(), row.begin(), row.end());
  }
  return from_vector(b, values, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
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
    detail::convert_elements(dtype(), bytes.data(), detail::element_dtype<T>(), values.data(), numel());
    return values;
  }
}

template <class B>
template <class T>
T Tensor<B>::item() const {
  if (numel() != 1) throw ShapeError("[item] " + to_string(shape()) + ": needs a tensor of one element");
  return to_vector<T>()[0];
}

/// Free functions with the names of the members, for generic code, where a member would need `x.template
/// item<float>()`.
template <class T = double, class B>
T item(const Tensor<B>& x) {
  return x.template item<T>();
}
template <class T = float, class B>
std::vector<T> to_vector(const Tensor<B>& x) {
  return x.template to_vector<T>();
}

/// A copy on another backend (and its device), without history. Between GPUs, or on one, it does not pass
/// through the host, and nobody waits for it; Lazy and Parity take it through the host.
template <class To, class From>
Tensor<To> to(To& backend, const Tensor<From>& x) {
  if (x.device().kind == DeviceKind::cuda) {
    const Array source = detail::array_in_memory(x.backend(), detail::kernel_array(x.primitive()));
    Array copy = detail::copy_between_gpus(detail::kernel_backend(backend), source);
    if (copy.defined()) return {backend, detail::wrap_array(backend, std::move(copy))};
  }
  const std::vector<std::byte> bytes = to_bytes(x);
  return from_bytes(backend, x.meta(), bytes.data());
}

template <class B>
std::string to_string(const Tensor<B>& x) {
  return detail::format_elements(x.meta(), to_bytes(x).data());
}
/// An undefined tensor prints as "undefined".
template <class B>
std::ostream& operator<<(std::ostream& out, const Tensor<B>& x) {
  return detail::write(out, x.defined() ? to_string(x) : "undefined");
}

}  // namespace ferrite
