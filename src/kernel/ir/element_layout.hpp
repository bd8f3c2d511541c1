// How C lays out the elements of arrays and the arguments of a launch.
#pragma once

#include <cstddef>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// Scalars of a type one after the other, as C lays them out.
struct ElementLayout {
  struct Part {
    ScalarType type;
    std::uint32_t offset;
    bool is_array = false;  // an ArrayArgument, of a kernel's struct parameter
    Type array_type = {};
  };
  std::vector<Part> parts;
  std::uint32_t size = 0, alignment = 1;
};
/// Adds a value of this type behind what is there.
void append(ElementLayout& layout, const Module& module, Type type);
ElementLayout layout_of(const Module& module, Type type);

/// A scalar in memory, as C has it, and back.
Number read_scalar(ScalarType type, const std::byte* at);
void write_scalar(ScalarType type, std::byte* at, Number n);

}  // namespace ferrite::kernel
