// Statements that tiles are made of.
#pragma once

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

inline Expr number(std::int64_t value) { return literal(ScalarType::i32, value); }

inline Stmt barrier() {
  Stmt s;
  s.kind = StmtKind::evaluate;
  s.values.push_back(apply(Builtin::sync_threads, {}));
  return s;
}

inline Stmt store(Expr target, Expr value) {
  Stmt s;
  s.targets.push_back(std::move(target));
  s.values.push_back(std::move(value));
  return s;
}

}  // namespace ferrite::kernel
