// The interpreter: what a kernel means, executed statement by statement. The oracle of every emitter; not
// fast.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ferrite/io/host_tensor.hpp"
#include "ferrite/kernel/races.hpp"

namespace ferrite::kernel {

/// An argument of a kernel. Scalars, composites and structs of them are `numbers`, the components one after
/// the other (matrices row by row, structs field by field). An array has a shape and its elements' numbers in
/// C order. A struct that holds arrays is `fields` instead, one value each.
struct Value {
  Type type;
  std::vector<Number> numbers;
  std::vector<std::int64_t> shape;
  std::vector<Value> fields;
};

FERRITE_API Value scalar_value(ScalarType type, double value);
/// An array of zeros. Throws ShapeError unless there is an extent for each axis of the type.
FERRITE_API Value array_value(const Module& module, Type type, std::vector<std::int64_t> shape);

/// The dtype of tensors that can be arrays of this element; nothing for structs. Where there is no dtype of
/// the same name, the bits are stored in another: i16 in u16, u64 in i64. u32 is stored in i32, because ops
/// compute with that; a launch also takes tensors of u32.
FERRITE_API std::optional<DType> dtype_of_elements(Type element);

/// An array from a tensor whose last axes are those of the element type (vec3: one of 3; mat22: two of 2), or
/// a scalar or composite from a tensor of its shape. Elements are cast to the type's scalar; i32 and i64
/// tensors give u32 and u64 the same bits. Throws ShapeError, or DTypeError for structs.
FERRITE_API Value value_from(Type type, const HostTensor& tensor);
/// The inverse. u32 becomes i32 and u64 i64 (the same bits), i8, i16 and u16 become i32. bf16 becomes f32.
FERRITE_API HostTensor tensor_from(const Value& value);

/// native: every operation is rounded to its type (f16 and bf16 too; functions such as sin are computed in
/// f64 first, so they are as good as the type allows). f64: floats are never rounded to less than f64.
enum class Precision : std::uint8_t { native, f64 };

struct InterpretOptions {
  Precision precision = Precision::native;
  /// Threads per block; used by wp.block_dim(), shared arrays and barriers.
  int block_dim = 256;
  /// Limit on statements and loop rounds of all threads together; beyond it the kernel is assumed to hang.
  std::int64_t step_limit = 200'000'000;
  /// If given, receives the races that the run shows (one for each of the first 64 pairs of places), in
  /// arrays of up to 2^22 numbers. Slows the run down.
  std::vector<Race>* races = nullptr;
  /// Makes a race a KernelError, thrown at the end of the run.
  bool refuse_races = false;
};

/// Runs the kernel for every thread of the grid `dim` (1 to 4 extents, the last fastest), in order; threads
/// of a block take turns only at barriers. Arrays in `arguments` are changed in place. Throws KernelError,
/// with the place, the thread and the values, for an index out of bounds, integer division by zero or
/// overflow of it, a shift by a count outside the type, a variable read before it was written, a failed
/// assertion, a barrier not reached by all threads of its block, or too many steps; ValueError or ShapeError
/// for arguments that do not fit. After an error the arrays hold what was written so far.
FERRITE_API void interpret(const Module& module, const Function& kernel, std::span<const std::int64_t> dim,
                           std::span<Value> arguments, const InterpretOptions& options = {});

}  // namespace ferrite::kernel
