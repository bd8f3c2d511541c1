// Branches, loops with break and continue, early returns.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.functions = s.draw.chance(0.4);
  s.axes(s.level >= 4 && s.draw.chance(0.4) ? 2 : 1);
  if (s.draw.chance(0.3)) {  // some threads have nothing to do
    Expr skip = s.draw.chance(0.5) ? irsynth::apply(Builtin::ge, s.at(s.cursor[0]), s.count(s.grid[0] - 3))
                                   : s.condition(0);
    Stmt leave;
    leave.kind = kernel::StmtKind::return_;
    s.if_else(std::move(skip), [&] { s.emit(std::move(leave)); });
  }
  s.branch();
  if (s.level >= 3) s.draw.chance(0.6) ? s.accumulate() : s.iterate();
  s.body(s.real_type());
  s.description = s.level >= 3 ? "branches and loops" : "branches";
}

}  // namespace
const Category all::control_flow{"control_flow", "if, elif, else, for, while, break, continue, return", 2,
                                 make};
}  // namespace ferrite::irsynth
