// Converts arguments in C layout to the interpreter's values, and its arrays back.
#include "kernel/interpret/packed_values.hpp"

#include <cstring>

#include "ferrite/kernel/emit.hpp"
#include "kernel/ir/element_layout.hpp"

namespace ferrite::kernel {

namespace {

/// Calls f(where the element is in memory, its index in C order) for all elements.
template <class F>
void for_elements(const ArrayArgument& array, int dims, std::size_t size, F f) {
  std::int64_t count = 1;
  for (int axis = 0; axis < dims; ++axis) count *= array.shape[axis];
  for (std::int64_t e = 0; e < count; ++e) {
    std::int64_t rest = e, at = 0;
    for (int axis = dims; axis-- > 0; rest /= array.shape[axis])
      at += rest % array.shape[axis] * array.strides[axis];
    f(static_cast<std::byte*>(array.data) + at * static_cast<std::int64_t>(size),
      static_cast<std::size_t>(e));
  }
}

/// Walks a value and its memory in parallel; `array` and `scalar` do the work.
template <class Array, class Scalars>
void walk(const Module& module, Type type, std::byte* memory, Value& value, Array array, Scalars scalars) {
  value.type = type;
  if (type.is_array()) return array(type, memory, value);
  if (!type.is_struct()) return scalars(type, memory, value);
  const auto& fields = module.structs[type.structure].fields;
  value.fields.resize(fields.size());
  ElementLayout layout;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    ElementLayout until = layout;
    append(until, module, fields[f].type);
    const std::uint32_t size = layout_of(module, fields[f].type).size;
    walk(module, fields[f].type, memory + until.size - size, value.fields[f], array, scalars);
    layout = until;
  }
}

}  // namespace

void interpret_packed(const Module& module, const Function& kernel, std::span<const std::int64_t> dim,
                      void* const* arguments, const InterpretOptions& options) {
  std::vector<Value> values(static_cast<std::size_t>(kernel.parameters));
  const auto for_all = [&](auto array, auto scalars) {
    for (std::size_t p = 0; p < values.size(); ++p)
      walk(module, kernel.variables[p].type, static_cast<std::byte*>(arguments[p]), values[p], array,
           scalars);
  };
  const auto read_parts = [](const ElementLayout& layout, const std::byte* at, std::vector<Number>& out) {
    for (const auto& part : layout.parts) out.push_back(read_scalar(part.type, at + part.offset));
  };
  for_all(
      [&](Type type, std::byte* memory, Value& value) {
        ArrayArgument array;
        std::memcpy(&array, memory, sizeof array);
        value.shape.assign(array.shape, array.shape + type.dims);
        const ElementLayout layout = layout_of(module, type.element());
        for_elements(array, type.dims, layout.size,
                     [&](const std::byte* at, std::size_t) { read_parts(layout, at, value.numbers); });
      },
      [&](Type type, std::byte* memory, Value& value) {
        read_parts(layout_of(module, type), memory, value.numbers);
      });
  const auto write_back = [&] {
    for_all(
        [&](Type type, std::byte* memory, Value& value) {
          ArrayArgument array;
          std::memcpy(&array, memory, sizeof array);
          const ElementLayout layout = layout_of(module, type.element());
          for_elements(array, type.dims, layout.size, [&](std::byte* at, std::size_t e) {
            const std::size_t n = layout.parts.size();
            for (std::size_t p = 0; p < n; ++p)
              write_scalar(layout.parts[p].type, at + layout.parts[p].offset, value.numbers[e * n + p]);
          });
        },
        [](Type, std::byte*, Value&) {});
  };
  try {
    interpret(module, kernel, dim, values, options);
  } catch (...) {
    write_back();  // what was written until then
    throw;
  }
  write_back();
}

}  // namespace ferrite::kernel
