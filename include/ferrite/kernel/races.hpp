// Races: threads that access one element of an array without an atomic or a barrier between them. The result
// of such a kernel depends on the order of its threads, and its gradient is not defined (kernel/adjoint.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// Two accesses of one element by two threads, at least one of which writes, and not both atomics. The
/// interpreter finds those of one run: InterpretOptions::races.
struct Race {
  enum class Access : std::uint8_t { read, write, atomic };
  struct By {
    Access access;
    std::int64_t thread;  // its number in the grid
    Place place;
  };
  std::string kernel, array;
  std::vector<std::int64_t> index;
  By first, second;        // in the order in which they happened
  std::int64_t count = 1;  // races of the same two places
};

/// A message for the user, with the place of the second access. It is not thrown; what() is its text.
FERRITE_API KernelError warning(const Module& module, const Race& race);

/// Stores by all threads to the same element, whatever the arguments are, each with a different value:
/// `total[0] = x[i]`. They are found in the text, so only if a kernel's index and conditions show it.
FERRITE_API std::vector<KernelError> certain_races(const Module& module, const Function& kernel);

}  // namespace ferrite::kernel
