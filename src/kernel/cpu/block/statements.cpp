// Statements: branches and loops narrow the mask, jumps take lanes out of it.
#include <algorithm>

#include "kernel/cpu/block/compiler.hpp"

namespace ferrite::kernel {

void BlockCompiler::statement(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::assign:
      return assign(s);
    case StmtKind::update:
      return update(s);
    case StmtKind::evaluate:
      value(s.values[0]);
      return;
    case StmtKind::declare_array:
      return declare_array(s);
    case StmtKind::if_:
      return if_else(s);
    case StmtKind::for_:
      return for_loop(s);
    case StmtKind::while_:
      return while_loop(s);
    case StmtKind::break_:
      return leave(scope_->loops.back());
    case StmtKind::continue_:
      return leave(scope_->loops.back() + 1);
    case StmtKind::return_: {
      std::size_t at = 0;
      for (const Expr& v : s.values)
        for (const Cell& c : value(v)) {
          if (is_array(c)) throw Unsupported{"a function that returns an array"};
          copy(scope_->results[at++], c, write_mask());
        }
      if (scope_->returns) leave(0);
      return;
    }
    case StmtKind::assert_: {
      const Cell holds = value(s.values[0])[0];
      Instruction& i = emit(control::assertion);
      i.a = holds.reg;
      i.detail = static_cast<int>(program_.texts.size());
      i.place = s.place;
      program_.texts.push_back(s.text);
      return;
    }
  }
}

void BlockCompiler::assign(const Stmt& s) {
  if (s.targets.size() == 1) {
    const Expr& target = s.targets[0];
    // Computed directly into its place if no lane keeps its old value.
    const bool direct = target.kind == ExprKind::variable && target.type.is_scalar() && write_mask() < 0 &&
                        !scope_->variables[static_cast<std::size_t>(target.index)].empty();
    const Cell own = direct ? scope_->variables[static_cast<std::size_t>(target.index)][0] : Cell{};
    Cells cells = value(s.values[0], direct && own.reg >= permanent_end_ ? &own : nullptr);
    if (cells.size() > 1 && s.values[0].kind != ExprKind::variable) cells = fresh(cells);  // v = (v.y, v.x)
    return store(target, cells);
  }
  Cells all;
  for (const Expr& v : s.values)
    for (const Cell& c : fresh(value(v))) all.push_back(c);
  std::size_t at = 0;
  for (const Expr& target : s.targets) {
    const auto n = static_cast<std::size_t>(size_of(target.type));
    store(target, Cells(all.begin() + static_cast<std::ptrdiff_t>(at),
                        all.begin() + static_cast<std::ptrdiff_t>(at + n)));
    at += n;
  }
}

void BlockCompiler::update(const Stmt& s) {
  const Expr& target = s.targets[0];
  const Spot place = spot(target);
  const Cells right = value(s.values[0]);
  using enum Builtin;
  const Builtin b = s.builtin;
  const bool as_atomic = b == add || b == sub || b == bit_and || b == bit_or || b == bit_xor;
  if (place.access >= 0 && as_atomic) {
    update_memory(b, place, right, {}, s.place);
    return;
  }
  const Cells before = load(place, target.type, target.place);
  const Cells after = combine(b, target.type, {target.type, s.values[0].type}, {before, right}, s.place);
  if (target.kind == ExprKind::variable) return assign_variable(target, after);
  store(place, after, s.place);
}

void BlockCompiler::declare_array(const Stmt& s) {
  Cells& own = scope_->variables[static_cast<std::size_t>(s.targets[0].index)];
  const int array = s.shared ? shared_.at(&s) : local_.at({scope_, &s});
  if (own[0].array >= 0 && own[0].array != array)
    throw Unsupported{"a variable that stands for several arrays"};
  own[0].array = array;
  scope_->defined[static_cast<std::size_t>(s.targets[0].index)] = true;
  if (!s.shared) emit(control::zero_array).detail = array;
}

/// Statements under their own mask.
void BlockCompiler::run_body(const std::vector<Stmt>& statements, int mask) {
  const int outer = std::exchange(mask_, mask);
  scope_->chain.push_back(mask);
  ++scope_->depth;
  body(statements);
  --scope_->depth;
  scope_->chain.pop_back();
  mask_ = outer;
}

void BlockCompiler::if_else(const Stmt& s) {
  const Cell condition = value(s.values[0])[0];
  const int yes = take_mask(), no = s.orelse.empty() ? -1 : take_mask();
  Instruction& split = emit(no < 0 ? control::narrow : control::split);
  split.a = condition.reg;
  split.detail = yes;
  split.target = no;
  for (const int mask : {yes, no}) {
    if (mask < 0) continue;
    const std::size_t jump = here();
    emit(control::jump_if_none).mask = mask;
    run_body(mask == yes ? s.body : s.orelse, mask);
    land(jump);
  }
}

void BlockCompiler::for_loop(const Stmt& s) {
  const Expr& target = s.targets[0];
  const bool uniform = is_uniform(s.values[0]) && is_uniform(s.values[1]) && !has_jump(s.body) &&
                       s.values[2].kind == ExprKind::literal && s.values[2].number.integer != 0;
  Cell bounds[3];
  for (std::size_t i = 0; i < 3; ++i) bounds[i] = cast(value(s.values[i])[0], ScalarType::i64);
  const Cell range = take(ScalarType::i64);
  take(ScalarType::i64);
  take(ScalarType::i64);
  touch(target);
  const Cell variable = scope_->variables[static_cast<std::size_t>(target.index)][0];
  const bool u64 = s.values[0].type.scalar == ScalarType::u64;
  Instruction& begin = emit(u64 ? control::begin_range_u64 : control::begin_range);
  begin.out = range.reg;
  begin.a = bounds[0].reg;
  begin.b = bounds[1].reg;
  begin.c = bounds[2].reg;
  begin.place = s.place;
  if (uniform) {
    begin.mask = -1;
    const std::size_t skip = here();
    emit(control::jump_if_none);
    const std::size_t top = here();
    Instruction& round = emit(uniform_round_instruction(target.type.scalar));
    round.out = variable.reg;
    round.a = range.reg;
    round.mask = write_mask();
    round.place = s.place;
    ++scope_->depth;
    body(s.body);
    --scope_->depth;
    emit(control::jump).target = static_cast<int>(top);
    land(top);
    land(skip);
    return;
  }
  const int looping = take_mask();
  emit(control::set_mask).detail = looping;
  const std::size_t top = here();
  Instruction& round = emit(for_round_instruction(target.type.scalar));
  round.out = variable.reg;
  round.a = range.reg;
  repeat(s, round, looping, top);
  land(top);
}

/// The body of a loop, for the lanes that `round` lets in, and a jump back to the top.
void BlockCompiler::repeat(const Stmt& loop, Instruction& round, int looping, std::size_t top) {
  const int inside = take_mask();
  round.mask = looping;
  round.detail = inside;
  round.place = loop.place;
  scope_->loops.push_back(scope_->chain.size());
  scope_->chain.push_back(looping);
  run_body(loop.body, inside);
  scope_->chain.pop_back();
  scope_->loops.pop_back();
  emit(control::jump).target = static_cast<int>(top);
}

void BlockCompiler::while_loop(const Stmt& s) {
  const int looping = take_mask(), outer = mask_;
  emit(control::set_mask).detail = looping;
  const std::size_t top = here();
  mask_ = looping;
  ++scope_->depth;
  const Cell condition = value(s.values[0])[0];
  --scope_->depth;
  mask_ = outer;
  const std::size_t round_at = here();
  Instruction& round = emit(control::while_round);
  round.a = condition.reg;
  repeat(s, round, looping, top);
  land(round_at);
}

/// Removes the active lanes from the masks from place `from` of the chain on; from the current one last.
void BlockCompiler::leave(std::size_t from) {
  Instruction& i = emit(control::clear_masks);
  i.detail = static_cast<int>(program_.mask_lists.size());
  program_.mask_lists.emplace_back(scope_->chain.begin() + static_cast<std::ptrdiff_t>(from),
                                   scope_->chain.end());
}

}  // namespace ferrite::kernel
