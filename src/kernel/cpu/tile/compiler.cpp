// Statements of tile programs, and the places of their values.
#include "kernel/cpu/tile/compiler.hpp"

namespace ferrite::kernel {

namespace {

bool reads_thread(const Stmt& s) {
  return s.kind == StmtKind::assign && s.values[0].kind == ExprKind::apply &&
         s.values[0].builtin == Builtin::tid &&
         std::all_of(s.targets.begin(), s.targets.end(),
                     [](const Expr& t) { return t.kind == ExprKind::variable; });
}

}  // namespace

void TileCompiler::count_uses() {
  const auto count = kernel_.variables.size();
  uses_.resize(count);
  assignments_.resize(count);
  definitions_.resize(count);
  places_.resize(count);
  depths_.resize(count);
  for_each_expr(kernel_.body, [&](const Expr& e) {
    if (e.kind == ExprKind::variable) ++uses_[at(e.index)];
    if (const auto choice = choice_of(e)) --uses_[at(choice->variable->index)];  // two, of one instruction
  });
  for_each_stmt(kernel_.body, [&](const Stmt& s) {
    for (const Expr& t : s.targets)
      if (t.kind == ExprKind::variable) ++assignments_[at(t.index)], --uses_[at(t.index)];
  });
  for (int p = 0; p < kernel_.parameters; ++p)
    if (assignments_[at(p)] > 0) throw Refused{"a parameter that is assigned"};
}

void TileCompiler::compile() {
  count_uses();
  if (kernel_.body.empty() || !reads_thread(kernel_.body[0])) throw Refused{"no thread index"};
  for (const Expr& t : kernel_.body[0].targets) {
    thread_.push_back(t.index);
    if (assignments_[at(t.index)] != 1) throw Refused{"a thread index that is assigned"};
  }
  code_.rank = static_cast<int>(thread_.size());
  statements();
  for (const auto& a : code_.arrays)
    for (const auto& b : code_.arrays)
      if (a.stored && (a.fixed != 0 || (&a != &b && a.parameter == b.parameter)))
        throw Refused{"an array at two places"};
  move_places();
}

/// To a variable.
void TileCompiler::assign(const Stmt& s) {
  const Expr& given = s.values[0];
  const int variable = s.targets[0].index;
  const std::size_t v = at(variable);
  const bool in_memory = given.kind == ExprKind::element && given.type.scalar == ScalarType::f32;
  const bool stable = !contains(given, [&](const Expr& e) {  // computed later, it must still be the same
    if (e.kind == ExprKind::element) array_place(e);         // an index out of bounds is one, used or not
    return e.kind == ExprKind::variable && e.index >= kernel_.parameters && assignments_[at(e.index)] != 1;
  });
  if (assignments_[v] == 1 && stable && (uses_[v] == 1 || in_memory) && (depths_[v] = depth(given)) < 64) {
    definitions_[v] = &given;  // computed, or read, where it is used
    return;
  }
  value(given);
  emit(tile_store(ScalarType::f32, place_of(variable)));
  held_ = variable;
}

void TileCompiler::statements() {
  struct Delayed {
    int variable_place, array_place;
    ScalarType type;
  };
  std::vector<Delayed> delayed;
  for (std::size_t i = 1; i < kernel_.body.size(); ++i) {
    const Stmt& s = kernel_.body[i];
    if (s.kind != StmtKind::assign || s.targets.size() != 1) throw Refused{"more than assignments"};
    const Expr &target = s.targets[0], &given = s.values[0];
    // Stores are delayed until the end, so a later read would see old values.
    if (stored_ && contains(given, [](const Expr& e) { return e.kind == ExprKind::element; }))
      throw Refused{"a read behind a store"};
    if (target.kind == ExprKind::variable) {
      assign(s);
      continue;
    }
    if (target.kind != ExprKind::element) throw Refused{"an assignment to a part"};
    const int array = array_place(target);
    code_.arrays[at(array)].stored = stored_ = true;
    value(given);
    if (i + 1 == kernel_.body.size() && delayed.empty()) {
      emit(tile_store(target.type.scalar, operand_of(array)));
    } else {
      delayed.push_back({fresh_place(), array, target.type.scalar});
      emit(tile_store(ScalarType::f32, delayed.back().variable_place));
    }
  }
  for (const Delayed& d : delayed) {
    emit(tile_load(ScalarType::f32, d.variable_place));
    emit(tile_store(d.type, operand_of(d.array_place)));
  }
  emit(tile_end());
}

void TileCompiler::emit(TileInstruction i) {
  held_ = -1;
  code_.instructions.push_back(i);
}

void TileCompiler::move_places() {
  const auto moved = [&](int operand) {
    if (operand >= array_base) return code_.place_offset(at(operand - array_base));
    return operand < 0 ? code_.place_offset(code_.arrays.size() - 1 - static_cast<std::size_t>(operand))
                       : operand;
  };
  for (TileInstruction& i : code_.instructions)
    for (int& operand : i.operands) operand = moved(operand);
}

TileProgram::TileProgram(const Function& kernel) : code_(std::make_unique<TileCode>()) {
  try {
    TileCompiler(kernel, *code_, true).compile();
    if (code_->extremes.empty()) return;
    plain_ = std::make_unique<TileCode>();
    TileCompiler(kernel, *plain_, false).compile();
  } catch (const TileCompiler::Refused& r) {
    code_->obstacle = r.reason;
  }
}

}  // namespace ferrite::kernel
