// Values and tensors: how host data goes into the interpreter and comes out.
#include <fmt/format.h>

#include "kernel/builtins/call.hpp"
#include "kernel/ir/dtypes.hpp"

namespace ferrite::kernel {

namespace {

int size_of(const Module& module, Type type) {
  if (!type.is_struct()) return type.components();
  int size = 0;
  for (const Variable& f : module.structs[type.structure].fields) size += size_of(module, f.type);
  return size;
}

/// As tensor_from() says.
DType host_dtype(Type type) {
  switch (type.scalar) {
    case ScalarType::bf16:
      return DType::f32;
    case ScalarType::i8:
    case ScalarType::i16:
    case ScalarType::u16:
      return DType::i32;
    default:
      return *dtype_of_elements(type);
  }
}

}  // namespace

Value scalar_value(ScalarType type, double value) {
  return {Type::of(type), {cast_number(ScalarType::f64, type, Precision::native, from_real(value))}, {}, {}};
}

Value array_value(const Module& module, Type type, std::vector<std::int64_t> shape) {
  if (shape.size() != type.dims)
    throw ShapeError(fmt::format("[array_value] shape [{}] for {}: it has {} axes", fmt::join(shape, ", "),
                                 to_string(type), type.dims));
  std::size_t count = static_cast<std::size_t>(size_of(module, type.element()));
  for (const std::int64_t n : shape) {
    if (n < 0) throw ShapeError(fmt::format("[array_value] the extent {}: it cannot be negative", n));
    count *= static_cast<std::size_t>(n);
  }
  return {type, std::vector<Number>(count), std::move(shape), {}};
}

Value value_from(Type type, const HostTensor& tensor) {
  if (type.kind == Type::Kind::structure)
    throw DTypeError("[value_from] a tensor holds no structs: give the fields one by one");
  const std::vector<std::int64_t> inner = component_axes(type.element());
  const int rank = tensor.shape().rank(), wanted = type.dims + static_cast<int>(inner.size());
  bool fits = rank == wanted;
  for (int i = 0; fits && i < static_cast<int>(inner.size()); ++i)
    fits = tensor.shape()[type.dims + i] == inner[static_cast<std::size_t>(i)];
  if (!fits)
    throw ShapeError(fmt::format(
        "[value_from] shape {} for {}: it has {} axes{}", to_string(tensor.shape()), to_string(type), wanted,
        inner.empty() ? "" : fmt::format(", the last of [{}]", fmt::join(inner, ", "))));
  Value value{type, {}, {}, {}};
  for (int i = 0; i < type.dims; ++i) value.shape.push_back(tensor.shape()[i]);
  value.numbers.reserve(static_cast<std::size_t>(tensor.numel()));
  const ScalarType from = scalar_type(tensor.dtype());
  visit_any_dtype(tensor.dtype(), [&]<class T>() {
    for (const T x : tensor.as<T>()) {
      const Number n =
          is_float(from) ? from_real(convert<double>(x)) : from_integer(convert<std::int64_t>(x));
      value.numbers.push_back(cast_number(from, type.scalar, Precision::native, n));
    }
  });
  return value;
}

HostTensor tensor_from(const Value& value) {
  const Type type = value.type;
  if (type.kind == Type::Kind::structure)
    throw DTypeError("[tensor_from] a tensor holds no structs: take the fields one by one");
  std::vector<std::int64_t> extents = value.shape;
  for (const std::int64_t n : component_axes(type.element())) extents.push_back(n);
  const DType dtype = host_dtype(type);
  return HostTensor::make(dtype, Shape(extents), [&](std::span<std::byte> bytes) {
    visit_dtype(dtype, [&]<class T>() {
      T* out = reinterpret_cast<T*>(bytes.data());
      for (const Number n : value.numbers)
        *out++ = is_float(type.scalar) ? convert<T>(n.real) : convert<T>(n.integer);
    });
  });
}

}  // namespace ferrite::kernel
