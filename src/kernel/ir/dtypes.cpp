#include "kernel/ir/dtypes.hpp"

#include "ferrite/kernel/interpreter.hpp"

namespace ferrite::kernel {

ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ScalarType::f32;
    case DType::f64:
      return ScalarType::f64;
    case DType::f16:
      return ScalarType::f16;
    case DType::bf16:
      return ScalarType::bf16;
    case DType::i32:
      return ScalarType::i32;
    case DType::i64:
      return ScalarType::i64;
    case DType::u8:
      return ScalarType::u8;
    case DType::bool_:
      return ScalarType::bool_;
    case DType::i8:
      return ScalarType::i8;
    case DType::u16:
      return ScalarType::u16;
    case DType::u32:
      return ScalarType::u32;
  }
  return ScalarType::bool_;
}

std::optional<DType> dtype_of_elements(Type element) {
  if (element.kind == Type::Kind::structure) return std::nullopt;
  switch (element.scalar) {
    case ScalarType::f32:
      return DType::f32;
    case ScalarType::f64:
      return DType::f64;
    case ScalarType::f16:
      return DType::f16;
    case ScalarType::bf16:
      return DType::bf16;
    case ScalarType::i32:
    case ScalarType::u32:
      return DType::i32;
    case ScalarType::i64:
    case ScalarType::u64:
      return DType::i64;
    case ScalarType::u8:
      return DType::u8;
    case ScalarType::bool_:
      return DType::bool_;
    case ScalarType::i8:
      return DType::i8;
    case ScalarType::i16:
    case ScalarType::u16:
      return DType::u16;
  }
  return std::nullopt;
}

std::vector<std::int64_t> component_axes(Type element) {
  if (element.is_matrix()) return {element.rows, element.columns};
  if (element.is_composite()) return {element.rows};
  return {};
}

}  // namespace ferrite::kernel
