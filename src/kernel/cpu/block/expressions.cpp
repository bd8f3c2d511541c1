// Expressions: the cells that hold a value, after the instructions that compute it.
#include <algorithm>
#include <utility>

#include "kernel/cpu/block/compiler.hpp"

namespace ferrite::kernel {

namespace {

using enum Builtin;

/// The instruction of a builtin on scalars, or null.
Execute scalar_instruction(Builtin builtin, ScalarType type) {
  if (const Execute found = arithmetic_instruction(builtin, type)) return found;
  if (const Execute found = integer_instruction(builtin, type)) return found;
  return math_instruction(builtin, type);
}

bool can_fail(Builtin b, ScalarType type) {
  return is_integer(type) &&
         (b == div || b == cw_div || b == floordiv || b == mod || b == lshift || b == rshift);
}

bool has_draw(const Expr& e) {
  bool found = false;
  for_each_expr(e, [&](const Expr& part) {
    found |= part.kind == ExprKind::apply && info(part.builtin).effect == Effect::updates_first;
  });
  return found;
}

}  // namespace

Cells BlockCompiler::value(const Expr& e, const Cell* wanted) {
  switch (e.kind) {
    case ExprKind::literal:
      return {constant(e.type.scalar, e.number)};
    case ExprKind::apply:
      return apply(e, wanted);
    case ExprKind::call:
      return call(e);
    case ExprKind::cast:
      return {cast(value(e.args[0])[0], e.type.scalar, wanted)};
    case ExprKind::construct:
      return construct(e);
    case ExprKind::logical_and:
    case ExprKind::logical_or:
      return logical(e);
    case ExprKind::conditional:
      return conditional(e);
    default:
      return load(spot(e), e.type, e.place, wanted);
  }
}

Cell BlockCompiler::unary(Execute execute, Cell a, ScalarType out) {
  const Cell result = take(out);
  Instruction& i = emit(execute);
  i.out = result.reg;
  i.a = a.reg;
  return result;
}
Cell BlockCompiler::binary(Execute execute, Cell a, Cell b, ScalarType out) {
  const Cell result = unary(execute, a, out);
  program_.code.back().b = b.reg;
  return result;
}
Cell BlockCompiler::choose(Cell condition, Cell a, Cell b) {
  const Cell result = binary(select_instruction(a.type), condition, a, a.type);
  program_.code.back().c = b.reg;
  return result;
}
Cell BlockCompiler::cast(Cell from, ScalarType to, const Cell* wanted) {
  if (from.type == to) return from;
  const Cell out = wanted != nullptr ? *wanted : take(to);  // of another type: no operand
  Instruction& i = emit(cast_instruction(from.type, to));
  i.out = out.reg;
  i.a = from.reg;
  return out;
}
/// Copies values that must not change when a variable does.
Cells BlockCompiler::fresh(const Cells& cells) {
  Cells copies;
  for (const Cell& c : cells) {
    if (is_array(c) || c.reg < permanent_end_) {
      copies.push_back(c);
      continue;
    }
    copies.push_back(take(c.type));
    copy(copies.back(), c, -1);
  }
  return copies;
}

std::vector<Cells> BlockCompiler::operands(const Expr& e) {
  std::vector<Cells> list;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    list.push_back(value(e.args[i]));
    if (draws_ && std::any_of(e.args.begin() + static_cast<std::ptrdiff_t>(i) + 1, e.args.end(), has_draw))
      list.back() = fresh(list.back());
  }
  return list;
}

Cells BlockCompiler::apply(const Expr& e, const Cell* wanted) {
  switch (e.builtin) {
    case tid:
      return e.type.is(Type::Kind::tuple) ? Cells(axes_.begin(), axes_.begin() + e.type.rows)
                                          : Cells{thread_};
    case block_dim:
      return {unary(control::block_dim, {}, ScalarType::i32)};
    case sync_threads:
      emit(control::barrier).place = e.place;
      return {};
    case len:
    case shape: {
      const Type t = e.args[0].type;
      const Cell out = take(ScalarType::i32);
      if (!t.is_array()) {
        Instruction& i = emit(control::fill_integer);
        i.out = out.reg;
        i.number = t.rows;
        return {out};
      }
      const std::int64_t axis = e.builtin == len ? 0 : e.args[1].number.integer;
      if ((e.builtin == shape && e.args[1].kind != ExprKind::literal) || axis < 0 || axis >= t.dims)
        throw Unsupported{"the extent of an array on a computed axis"};
      const Cells array = load(spot(e.args[0]), t, e.place);
      if (array[0].array < 0) throw Unsupported{"a variable that stands for no array yet"};
      Instruction& i = emit(control::extent);
      i.out = out.reg;
      i.detail = array[0].array;
      i.number = axis;
      return {out};
    }
    case atomic_add:
    case atomic_sub:
    case atomic_min:
    case atomic_max:
    case atomic_exch:
    case atomic_cas:
    case atomic_and:
    case atomic_or:
    case atomic_xor:
      return atomic(e);
    default:
      break;
  }
  std::vector<Type> types;
  for (const Expr& arg : e.args) types.push_back(arg.type);
  return combine(e.builtin, e.type, types, operands(e), e.place, wanted);
}

Cells BlockCompiler::combine(Builtin builtin, Type type, const std::vector<Type>& types,
                             std::vector<Cells> operands, Place place, const Cell* wanted) {
  const std::size_t n = operands.size();
  const ScalarType scalar = n > 0 ? types[0].scalar : type.scalar;
  const auto at = [&](std::size_t arg, std::size_t c) {
    return operands[arg].size() == 1 ? operands[arg][0] : operands[arg][c];
  };
  if (builtin == where) {
    Cells chosen;
    for (std::size_t c = 0; c < operands[1].size(); ++c)
      chosen.push_back(choose(operands[0][0], operands[1][c], operands[2][c]));
    return chosen;
  }
  if (builtin == pos) return operands[0];
  if (builtin == transpose) {
    Cells turned;
    for (std::size_t c = 0, m = type.rows; c < m * m; ++c) turned.push_back(operands[0][c % m * m + c / m]);
    return turned;
  }
  std::size_t widest = 1;
  for (const Cells& o : operands) widest = std::max(widest, o.size());
  const Execute each = n > 0 && n <= 3 ? scalar_instruction(builtin, scalar) : nullptr;

  // From a composite to one truth value or component: step by step over the components.
  const bool any = builtin == ne || builtin == isnan || builtin == isinf;
  if (each != nullptr && widest > 1 && type.is_bool()) {
    Cell result{};
    for (std::size_t c = 0; c < widest; ++c) {
      Cell one = unary(each, operands[0][c], ScalarType::bool_);
      if (n == 2) program_.code.back().b = operands[1][c].reg;
      result = c == 0
                   ? one
                   : binary(any ? control::logical_or : control::logical_and, result, one, ScalarType::bool_);
    }
    return {result};
  }
  if ((builtin == min || builtin == max) && n == 1) {
    Cell best = operands[0][0];
    for (std::size_t c = 1; c < widest; ++c) best = binary(each, best, operands[0][c], scalar);
    return {best};
  }

  const std::size_t wide = static_cast<std::size_t>(size_of(type));
  const bool product = builtin == mul && n == 2 && operands[0].size() > 1 && operands[1].size() > 1;
  if (each != nullptr && !product && wide == widest) {
    Cells out;
    for (std::size_t c = 0; c < wide; ++c) {
      Instruction i;
      i.execute = each;
      i.mask = mask_;
      i.place = place;
      i.a = at(0, c).reg;
      if (n > 1) i.b = at(1, c).reg;
      if (n > 2) i.c = at(2, c).reg;
      const bool swaps = builtin == add || builtin == mul;
      if (n == 2 && swaps && i.a < uniform_end_) std::swap(i.a, i.b);
      i.single = n == 2 && i.b < uniform_end_;
      const bool in_place = arithmetic_instruction(builtin, scalar) != nullptr;
      const bool apart = wanted != nullptr && wanted->reg != i.a && wanted->reg != i.b && wanted->reg != i.c;
      const bool direct = wanted != nullptr && wide == 1 && (in_place || apart);
      const Cell result = direct ? *wanted : take(type.scalar);
      i.out = result.reg;
      if (can_fail(builtin, scalar)) {
        const Type part = Type::of(scalar);
        i.detail = static_cast<int>(program_.calls.size());
        program_.calls.push_back({&info(builtin), part, {part, part}, {{at(0, c)}, {at(1, c)}}, {result}});
      }
      emit(each) = i;
      out.push_back(result);
    }
    return out;
  }

  Cells out = take(type);
  const int id = static_cast<int>(program_.calls.size());
  program_.calls.push_back({&info(builtin), type, types, std::move(operands), out});
  const Execute vector = vector_instruction(program_.calls.back());
  Instruction& i = emit(vector != nullptr ? vector : control::call);
  i.detail = id;
  i.place = place;
  return out;
}

Cells BlockCompiler::atomic(const Expr& e) {
  const std::size_t dims = e.args[0].type.dims;
  Spot s;
  s.access = access(e.args[0], e.args.data() + 1, dims, e.place);
  for (int p = 0; p < size_of(e.type); ++p) s.parts.push_back(p);
  const Cells a = value(e.args[1 + dims]);
  const Cells b = e.args.size() > dims + 2 ? value(e.args[dims + 2]) : Cells{};
  return update_memory(e.builtin, s, a, b, e.place);
}

Cells BlockCompiler::construct(const Expr& e) {
  if (e.args.empty()) {
    Cells cells = take(e.type);
    Instruction& i = emit(control::zero);
    i.detail = static_cast<int>(program_.lists.size());
    program_.lists.emplace_back();
    for (const Cell& c : cells)
      if (c.reg != no_register) program_.lists.back().push_back(c);
    return cells;
  }
  std::vector<Cells> parts = operands(e);
  Cells cells;
  for (const Cells& p : parts) cells.insert(cells.end(), p.begin(), p.end());
  const auto wide = static_cast<std::size_t>(size_of(e.type));
  if (!e.type.is_struct() && cells.size() == 1) cells.assign(wide, cells[0]);
  for (Cell& c : cells)
    if (e.type.is_composite()) c = cast(c, e.type.scalar);
  return cells;
}

/// The second operand runs for the lanes that need it, or for all lanes if that does no harm.
Cells BlockCompiler::logical(const Expr& e) {
  const bool both = e.kind == ExprKind::logical_and;
  const Cell a = value(e.args[0])[0];
  if (is_safe(e.args[1]))
    return {
        binary(both ? control::logical_and : control::logical_or, a, value(e.args[1])[0], ScalarType::bool_)};
  const Cell out = take(ScalarType::bool_);
  copy(out, a, -1);
  const Cell rest = both ? a : unary(arithmetic_instruction(not_, ScalarType::bool_), a, ScalarType::bool_);
  const int lanes = take_mask(), outer = mask_;
  Instruction& narrow = emit(control::narrow);
  narrow.a = rest.reg;
  narrow.detail = lanes;
  mask_ = lanes;
  const std::size_t jump = here();
  emit(control::jump_if_none);
  copy(out, value(e.args[1])[0], lanes);
  land(jump);
  mask_ = outer;
  return {out};
}

Cells BlockCompiler::conditional(const Expr& e) {
  const Cell condition = value(e.args[0])[0];
  if (is_safe(e.args[1]) && is_safe(e.args[2])) {
    const Cells a = value(e.args[1]), b = value(e.args[2]);
    Cells chosen;
    for (std::size_t c = 0; c < a.size(); ++c) {
      if (a[c].array != b[c].array) throw Unsupported{"a choice between arrays"};
      chosen.push_back(is_array(a[c]) ? a[c] : choose(condition, a[c], b[c]));
    }
    return chosen;
  }
  Cells out = take(e.type);
  const int yes = take_mask(), no = take_mask(), outer = mask_;
  Instruction& split = emit(control::split);
  split.a = condition.reg;
  split.detail = yes;
  split.target = no;
  for (std::size_t branch = 1; branch <= 2; ++branch) {
    mask_ = branch == 1 ? yes : no;
    const std::size_t jump = here();
    emit(control::jump_if_none);
    const Cells cells = value(e.args[branch]);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (is_array(cells[c])) throw Unsupported{"a choice between arrays"};
      copy(out[c], cells[c], mask_);
    }
    land(jump);
  }
  mask_ = outer;
  return out;
}

Cells BlockCompiler::call(const Expr& e) {
  const Function& f = module_.functions[static_cast<std::size_t>(e.index)];
  const std::vector<Cells> arguments = operands(e);
  Cells results;
  for (const Type t : f.results) {
    if (t.is_array()) throw Unsupported{"a function that returns an array"};
    for (const Cell& c : take(t)) results.push_back(c);
  }
  Scope scope;
  scope.results = results;
  open(scope, f);
  for (std::size_t p = 0; p < arguments.size(); ++p) {
    if (scope.assignments[p] == 0) {
      scope.variables[p] = arguments[p];
      continue;
    }
    bind_copies(scope.variables[p], arguments[p]);
  }
  Scope* const outer = std::exchange(scope_, &scope);
  const int outer_mask = mask_;
  if (scope.returns) {
    const int own = take_mask();
    emit(control::set_mask).detail = own;
    scope.chain = {own};
    mask_ = own;
  }
  body(f.body);
  mask_ = outer_mask;
  scope_ = outer;
  return results;
}

/// Whether it may be computed for lanes that do not need it: it has no effect and cannot fail.
bool BlockCompiler::is_safe(const Expr& e) const {
  bool safe = true;
  for_each_expr(e, [&](const Expr& part) {
    if (part.kind == ExprKind::element || part.kind == ExprKind::call) safe = false;
    if (part.kind == ExprKind::component)
      for (std::size_t i = 1; i < part.args.size(); ++i)
        safe = safe && part.args[i].kind == ExprKind::literal;
    if (part.kind != ExprKind::apply) return;
    if (info(part.builtin).effect != Effect::none) safe = false;
    if (!part.args.empty() && can_fail(part.builtin, part.args[0].type.scalar)) {
      const Expr& by = part.args.back();
      const bool shift = part.builtin == lshift || part.builtin == rshift;
      safe = safe && by.kind == ExprKind::literal &&
             (shift ? by.number.integer >= 0 && by.number.integer < bits_of(by.type.scalar)
                    : by.number.integer != 0 && by.number.integer != -1);
    }
  });
  return safe;
}

/// Whether it is the same for all lanes and is computed for all of them, including inactive ones.
bool BlockCompiler::is_uniform(const Expr& e) const {
  bool uniform = is_safe(e);
  for_each_expr(e, [&](const Expr& part) {
    switch (part.kind) {
      case ExprKind::literal:
      case ExprKind::cast:
      case ExprKind::field:
        return;
      case ExprKind::variable:
        for (const Cell& c : scope_->variables[static_cast<std::size_t>(part.index)])
          uniform = uniform && (c.array >= 0 || c.reg < uniform_end_);
        return;
      case ExprKind::apply:
        uniform = uniform && !part.args.empty() &&
                  std::all_of(part.args.begin(), part.args.end(),
                              [](const Expr& x) { return x.type.is_scalar(); }) &&
                  (part.builtin == where || scalar_instruction(part.builtin, part.args[0].type.scalar));
        return;
      default:
        uniform = false;
    }
  });
  return uniform;
}

}  // namespace ferrite::kernel
