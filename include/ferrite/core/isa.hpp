// The instruction sets of the CPU kernels. The library holds its kernels once for each, and runs those of the
// best that the machine has. FERRITE_ISA=NAME in the environment asks for another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite {

struct Isa {
  /// "x86-64-v2", "x86-64-v3", "x86-64-v4", "neon", "sve", or "native" in a library for one machine.
  std::string name;
  /// This machine has it.
  bool is_here;
};

/// Those that the library was compiled for, the plainest first.
FERRITE_API const std::vector<Isa>& isas();

/// The number in isas() of the one whose kernels run, the same until the process ends. Throws ValueError if
/// FERRITE_ISA names none of them or one that is not here, and BackendError if this machine has none at all.
FERRITE_API std::size_t chosen_isa();

}  // namespace ferrite
