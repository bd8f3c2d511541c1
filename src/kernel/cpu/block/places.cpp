// Places of values: variables and their parts, elements of arrays and their parts.
#include <algorithm>

#include "kernel/cpu/block/compiler.hpp"

namespace ferrite::kernel {

BlockCompiler::Spot BlockCompiler::spot(const Expr& e) {
  Spot s;
  switch (e.kind) {
    case ExprKind::variable:
      s.cells = scope_->variables[static_cast<std::size_t>(e.index)];
      s.variable = &e;
      return s;
    case ExprKind::element:
      return element(e);
    case ExprKind::field:
    case ExprKind::component:
      break;
    default:
      s.cells = value(e);
      return s;
  }
  s = spot(e.args[0]);
  const Type whole = e.args[0].type;
  const auto width = static_cast<std::size_t>(size_of(whole)),
             size = static_cast<std::size_t>(size_of(e.type));
  // From every way keep `size` scalars from `from` on; `count` ways of that kind if there is an index.
  const auto narrow = [&](const std::vector<std::size_t>& starts) {
    Spot part = s;
    part.cells.clear();
    part.parts.clear();
    for (std::size_t w = 0; w < static_cast<std::size_t>(s.ways); ++w)
      for (const std::size_t from : starts)
        for (std::size_t i = 0; i < size; ++i) {
          const std::size_t at = w * width + from + i;
          if (s.access >= 0)
            part.parts.push_back(s.parts[at]);
          else
            part.cells.push_back(s.cells[at]);
        }
    part.ways = s.ways * static_cast<int>(starts.size());
    s = std::move(part);
  };
  if (e.kind == ExprKind::field) {
    std::size_t from = 0;
    for (int f = 0; f < e.index; ++f)
      from += static_cast<std::size_t>(
          size_of(module_.structs[whole.structure].fields[static_cast<std::size_t>(f)].type));
    narrow({from});
    return s;
  }
  // One index of a matrix is a row; otherwise an index picks a part of what the previous one picked.
  const bool constant_indices =
      e.args.back().kind == ExprKind::literal && e.args[1].kind == ExprKind::literal;
  std::int64_t flat = 0;
  bool inside = true;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const std::int64_t extent = i == 1 ? whole.rows : whole.columns, at = e.args[i].number.integer;
    inside = inside && at >= 0 && at < extent;
    flat = flat * extent + at;
  }
  if (constant_indices && inside) {
    narrow({static_cast<std::size_t>(flat) * size});
    return s;
  }
  Register selector = s.selector;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const Cell index = cast(value(e.args[i])[0], ScalarType::i64);
    const Cell out = take(ScalarType::i64);
    Instruction& way = emit(control::way);
    way.out = out.reg;
    way.a = selector;
    way.b = index.reg;
    way.number = i == 1 ? whole.rows : whole.columns;
    way.detail = static_cast<int>(program_.texts.size());
    way.place = e.place;
    program_.texts.push_back(to_string(whole, module_.struct_names()));
    selector = out.reg;
  }
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < width; at += size) starts.push_back(at);
  narrow(starts);
  s.selector = selector;
  return s;
}

int BlockCompiler::access(const Expr& array, const Expr* first, std::size_t count, Place place) {
  const Cells cells = load(spot(array), array.type, place);
  if (cells[0].array < 0) throw Unsupported{"a variable that stands for no array yet"};
  Access found;
  found.array = cells[0].array;
  const ArraySlot::Kind kind = program_.arrays[static_cast<std::size_t>(found.array)].kind;
  std::vector<Cell> wide;
  for (std::size_t i = 0; i < count; ++i) {
    const Cell index = value(first[i])[0];
    found.indices.push_back(index);
    const bool narrow = index.type == ScalarType::i32 || index.type == ScalarType::i64;
    wide.push_back(narrow ? index : cast(index, ScalarType::i64));
  }
  found.linear = count == 1 && thread_.reg != no_register && wide[0].reg == thread_.reg &&
                 kind == ArraySlot::Kind::argument;
  found.pattern = program_.patterns++;
  const int id = static_cast<int>(program_.accesses.size());
  program_.accesses.push_back(found);
  if (found.linear) return id;
  Register offsets = no_register;
  for (std::size_t axis = 0; axis < count; ++axis) {
    const Cell out = take(ScalarType::i64);
    Instruction& i =
        emit(offset_instruction(wide[axis].type, axis == 0, scope_->range.may_be_negative(first + axis, 1)));
    i.out = out.reg;
    i.a = wide[axis].reg;
    i.b = offsets;
    i.detail = id;
    i.number = static_cast<std::int64_t>(axis);
    i.place = place;
    offsets = out.reg;
  }
  program_.accesses[static_cast<std::size_t>(id)].offsets = offsets;
  if (kind != ArraySlot::Kind::local) {
    Instruction& i = emit(pattern_instruction());
    i.a = offsets;
    i.detail = id;
  }
  return id;
}

BlockCompiler::Spot BlockCompiler::element(const Expr& e) {
  Spot s;
  s.access = access(e.args[0], e.args.data() + 1, e.args.size() - 1, e.place);
  const int parts = size_of(e.type);
  for (int p = 0; p < parts; ++p) s.parts.push_back(p);
  return s;
}

Cells BlockCompiler::load(const Spot& s, Type type, Place place, const Cell* wanted) {
  Cells all = s.cells;
  if (s.variable != nullptr) touch(*s.variable);
  for (const int p : s.parts) {
    const Access& a = program_.accesses[static_cast<std::size_t>(s.access)];
    const auto& part =
        program_.arrays[static_cast<std::size_t>(a.array)].layout.parts[static_cast<std::size_t>(p)];
    const Cell out = wanted != nullptr && s.parts.size() == 1 ? *wanted : take(part.type);
    Instruction& i = emit(load_instruction(part.type));
    i.out = out.reg;
    i.detail = s.access;
    i.number = part.offset;
    i.target = p;
    i.place = place;
    all.push_back(out);
  }
  if (s.ways == 1) return all;
  const auto size = static_cast<std::size_t>(size_of(type));
  Cells chosen(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
  for (std::size_t w = 1; w < static_cast<std::size_t>(s.ways); ++w) {
    const Cell is = take(ScalarType::bool_);
    Instruction& equals = emit(control::equals);
    equals.out = is.reg;
    equals.a = s.selector;
    equals.number = static_cast<std::int64_t>(w);
    for (std::size_t c = 0; c < size; ++c) chosen[c] = choose(is, all[w * size + c], chosen[c]);
  }
  return chosen;
}

void BlockCompiler::copy(Cell to, Cell from, int mask) {
  if (is_array(to) && to.array != from.array) throw Unsupported{"a variable that stands for several arrays"};
  if (to.reg == from.reg) return;
  Instruction& i = emit(copy_instruction(to.type));
  i.out = to.reg;
  i.a = from.reg;
  i.mask = mask;
}

/// A variable that may be read before it is written begins with zeros.
void BlockCompiler::touch(const Expr& variable) {
  const auto v = static_cast<std::size_t>(variable.index);
  if (scope_->defined[v]) return;
  scope_->defined[v] = true;
  for (const Cell& c : scope_->variables[v])
    if (c.reg != no_register) program_.lists[scope_->zeros].push_back(c);
}

void BlockCompiler::assign_variable(const Expr& target, const Cells& cells) {
  const auto v = static_cast<std::size_t>(target.index);
  Cells& own = scope_->variables[v];
  bool permanent =
      scope_->assignments[v] == 1 && scope_->depth == 0 && target.index >= scope_->function->parameters;
  for (const Cell& c : cells) permanent = permanent && c.array < 0 && c.reg < permanent_end_;
  if (permanent) {
    own = cells;
    scope_->defined[v] = true;
    return;
  }
  if (scope_->depth == 0 && write_mask() < 0) scope_->defined[v] = true;
  touch(target);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (cells[c].array < 0) {
      copy(own[c], cells[c], write_mask());
    } else if (own[c].array < 0 && scope_->depth == 0) {
      own[c].array = cells[c].array;
    } else if (own[c].array != cells[c].array) {
      throw Unsupported{"a variable that stands for several arrays"};
    }
  }
}

void BlockCompiler::store(const Expr& target, const Cells& cells) {
  if (target.kind == ExprKind::variable) return assign_variable(target, cells);
  store(spot(target), cells, target.place);
}

void BlockCompiler::store(const Spot& s, const Cells& cells, Place place) {
  if (s.variable != nullptr) touch(*s.variable);
  const std::size_t size = cells.size();
  for (std::size_t w = 0; w < static_cast<std::size_t>(s.ways); ++w) {
    const int outer = mask_;
    int lanes = s.access < 0 ? write_mask() : mask_;
    if (s.ways > 1) {
      const Cell is = take(ScalarType::bool_);
      Instruction& equals = emit(control::equals);
      equals.out = is.reg;
      equals.a = s.selector;
      equals.number = static_cast<std::int64_t>(w);
      lanes = take_mask();
      Instruction& narrow = emit(control::narrow);
      narrow.a = is.reg;
      narrow.detail = lanes;
    }
    mask_ = lanes;
    for (std::size_t c = 0; c < size; ++c) {
      if (s.access < 0) {
        copy(s.cells[w * size + c], cells[c], lanes);
        continue;
      }
      const Access& a = program_.accesses[static_cast<std::size_t>(s.access)];
      const int p = s.parts[w * size + c];
      const auto& part =
          program_.arrays[static_cast<std::size_t>(a.array)].layout.parts[static_cast<std::size_t>(p)];
      Instruction& i = emit(store_instruction(part.type));
      i.a = cells[c].reg;
      i.detail = s.access;
      i.number = part.offset;
      i.target = p;
      i.place = place;
    }
    mask_ = outer;
  }
}

/// element = builtin(element, a, b), one thread after the other; returns the old element.
Cells BlockCompiler::update_memory(Builtin builtin, const Spot& s, const Cells& a, const Cells& b,
                                   Place place) {
  const Access& access = program_.accesses[static_cast<std::size_t>(s.access)];
  const ArraySlot& slot = program_.arrays[static_cast<std::size_t>(access.array)];
  // Each thread has its own element if the indices include all of the thread's indices.
  const bool all = std::all_of(axes_.begin(), axes_.end(), [&](const Cell& axis) {
    return std::any_of(access.indices.begin(), access.indices.end(),
                       [&](const Cell& index) { return index.reg == axis.reg; });
  });
  const bool apart = access.linear || (!axes_.empty() && all);
  program_.sequential |= slot.kind == ArraySlot::Kind::argument && !apart;
  if (s.ways > 1) throw Unsupported{"an atomic on a component with a computed index"};
  Cells before;
  for (std::size_t c = 0; c < a.size(); ++c) {
    const int p = s.parts[c];
    const auto& part = slot.layout.parts[static_cast<std::size_t>(p)];
    const Execute execute = atomic_instruction(builtin, part.type);
    if (execute == nullptr) throw Unsupported{"an atomic of " + std::string(to_string(part.type))};
    const Cell out = take(part.type);
    Instruction& i = emit(execute);
    i.out = out.reg;
    i.a = a[c].reg;
    i.b = b.empty() ? no_register : b[c].reg;
    i.detail = s.access;
    i.number = part.offset;
    i.target = p;
    i.place = place;
    before.push_back(out);
  }
  return before;
}

}  // namespace ferrite::kernel
