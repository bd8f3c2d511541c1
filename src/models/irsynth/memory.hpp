// The arguments of a launch in C layout, for everything that runs kernels except the interpreter.
#pragma once

#include <cstddef>
#include <vector>

#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/interpreter.hpp"

namespace ferrite::irsynth {

/// The scalar of each number of a value: structs field by field.
std::vector<kernel::ScalarType> scalars_of(const kernel::Module& module, kernel::Type type);

class FERRITE_API Memory {
 public:
  Memory(const kernel::Module& module, const std::vector<kernel::Value>& values);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A pointer to each argument, as emitted kernels take them packed.
  void* const* arguments() const { return pointers_.data(); }
  /// The current values.
  std::vector<kernel::Value> values() const;

  /// The bytes of argument k: of an array its elements, else the argument itself.
  std::vector<std::byte>& bytes(std::size_t k) { return bytes_[k]; }
  /// For an array: its argument; `data` may be set to other memory.
  kernel::ArrayArgument& array(std::size_t k) { return arrays_[k]; }

 private:
  const kernel::Module& module_;
  std::vector<kernel::Value> before_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<kernel::ArrayArgument> arrays_;
  std::vector<void*> pointers_;
};

}  // namespace ferrite::irsynth
