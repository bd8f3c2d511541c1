// Makes generated IR as short as if a person had written it: folds constants and removes code without effect.
#pragma once

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// Replaces variables by known constants, folds expressions that become constant (x + 0, x * 1, if True), and
/// removes assignments nobody reads, loops and branches that do nothing, and variables nobody uses. The
/// arrays get the same contents. A computation that would have failed may be gone, and so may a loop that
/// would never have ended. 0 + x becomes x, also for x = -0.
FERRITE_API void simplify(const Module& module, Function& function);

/// Folds one expression.
FERRITE_API Expr fold(Expr e);

}  // namespace ferrite::kernel
