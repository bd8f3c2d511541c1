// Gradients against finite differences, along one random direction.
#pragma once

#include <string>

#include "ferrite/models/irsynth/program.hpp"

namespace ferrite::irsynth {

struct AdjointCheck {
  bool wrong = false;
  std::string verdict;  // for Checks::adjoint, or what is wrong
};

/// `back` is the adjoint of the program's kernel. Both run in the interpreter in f64. If the differences
/// themselves do not converge, the kernel has a kink or a jump there, and there is no verdict on the adjoint.
FERRITE_API AdjointCheck check_adjoint(const Program& program, const kernel::Module& back,
                                       const std::vector<kernel::Value>& arguments, RandomKey key);

}  // namespace ferrite::irsynth
