// Functions with the names of operators: `def add(x: float, y: float)` defines + of two floats.
#pragma once

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// Whether an update keeps its meaning although a function has the operator's name: atomics do, and sums into
/// a component of a variable, as in Warp.
inline bool keeps_operator(Builtin builtin, const Expr& target) {
  using enum Builtin;
  const bool sums =
      builtin == add || builtin == sub || builtin == bit_and || builtin == bit_or || builtin == bit_xor;
  const bool part = target.kind == ExprKind::component && target.args[0].kind == ExprKind::variable;
  return sums && (target.kind == ExprKind::element || part);
}

}  // namespace ferrite::kernel
