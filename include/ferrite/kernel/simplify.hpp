// Making IR that a program wrote as short as if a person had: constants are folded, code without effect goes.
#pragma once

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// Puts known constants in place of variables, folds what they make constant (x + 0, x * 1, if True), and
/// removes assignments nobody reads, loops and branches that do nothing, and variables nobody uses. The
/// arrays come out the same; a computation that would have failed may be gone, and so may a loop that would
/// never have ended. 0 + x becomes x, also for x = -0.
FERRITE_API void simplify(const Module& module, Function& function);

/// Only the folding of one expression.
FERRITE_API Expr fold(Expr e);

}  // namespace ferrite::kernel
