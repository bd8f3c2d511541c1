// Expressions: values are runs of numbers, written where the caller says.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernel/interpret/machine.hpp"

namespace ferrite::kernel {

void Interpreter::evaluate(const Expr& e, Number* out) {
  switch (e.kind) {
    case ExprKind::literal:
      out[0] = e.number;
      return;
    case ExprKind::apply:
      return apply_builtin(e, out);
    case ExprKind::call:
      return call_function(e, out);
    case ExprKind::cast: {
      Number x;
      evaluate(e.args[0], &x);
      out[0] = cast_number(e.args[0].type.scalar, e.type.scalar, options_.precision, x);
      return;
    }
    case ExprKind::construct:
      return construct_value(e, out);
    case ExprKind::logical_and:
      out[0].integer = truth(e.args[0]) && truth(e.args[1]);
      return;
    case ExprKind::logical_or:
      out[0].integer = truth(e.args[0]) || truth(e.args[1]);
      return;
    case ExprKind::conditional:
      return evaluate(e.args[truth(e.args[0]) ? 1 : 2], out);
    default: {  // variable, element, component, field
      const Arena::Scope scope(arena_);
      const Number* found = read(e);
      std::copy(found, found + size_of(e.type), out);
    }
  }
}

const Number* Interpreter::read(const Expr& e) {
  const Number* found = numbers(e);
  note(e, found, size_of(e.type), Race::Access::read);
  return found;
}

bool Interpreter::truth(const Expr& e) { return integer(e) != 0; }

std::int64_t Interpreter::integer(const Expr& e) {
  Number x;
  evaluate(e, &x);
  return x.integer;
}

Number* Interpreter::variable_of(const Expr& e, bool write) {
  const auto i = static_cast<std::size_t>(e.index);
  if (write) frame_.written[i] = true;
  if (!frame_.written[i]) {
    place_ = e.place;
    fail(fmt::format("variable '{}' is read before it was assigned", frame_.function->variables[i].name));
  }
  return frame_.numbers + frame_.layout->offsets[i];
}

Number* Interpreter::numbers(const Expr& e) {
  switch (e.kind) {
    case ExprKind::variable:
      return variable_of(e, false);
    case ExprKind::element:
      return element_of(e);
    case ExprKind::field:
      return numbers(e.args[0]) + field_offset(e.args[0].type.structure, e.index);
    case ExprKind::component: {
      Number* base = numbers(e.args[0]);
      return base + component_offset(e);
    }
    default: {
      Number* room = arena_.take(static_cast<std::size_t>(size_of(e.type)));
      evaluate(e, room);
      return room;
    }
  }
}

/// Like numbers, but for a target: a variable counts as written.
Number* Interpreter::place_of(const Expr& e) {
  if (e.kind == ExprKind::variable) return variable_of(e, true);
  return numbers(e);  // parts of a variable need the variable written before
}

Number* Interpreter::element_of(const Expr& e) {
  const Number handle = *numbers(e.args[0]);
  std::array<std::int64_t, 4> at{};
  const std::size_t dims = e.args.size() - 1;
  for (std::size_t i = 0; i < dims; ++i) at[i] = integer(e.args[i + 1]);
  place_ = e.place;
  return element_at(handle, {at.data(), dims});
}

std::int64_t Interpreter::component_offset(const Expr& e) {
  const Type t = e.args[0].type;
  std::int64_t offset = 0;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const std::int64_t index = integer(e.args[i]), extent = i == 1 ? t.rows : t.columns;
    const std::int64_t at = index < 0 ? index + extent : index;
    if (at < 0 || at >= extent) {
      place_ = e.place;
      fail(fmt::format("index {} is outside {}, which has {} there", index, to_string(t), extent));
    }
    offset = offset * (i == 1 ? 1 : t.columns) + at;
  }
  return t.is_matrix() && e.args.size() == 2 ? offset * t.columns : offset;
}

void Interpreter::apply_builtin(const Expr& e, Number* out) {
  const Arena::Scope scope(arena_);
  const BuiltinInfo& row = info(e.builtin);
  std::array<Number*, 8> values;  // atomic_cas on four axes has seven arguments
  std::array<Type, 8> types;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    types[i] = e.args[i].type;
    if (i == 0 && row.effect == Effect::updates_first) {
      values[i] = variable_of(e.args[i], false);
      continue;
    }
    values[i] = arena_.take(static_cast<std::size_t>(size_of(types[i])));
    evaluate(e.args[i], values[i]);
  }
  place_ = e.place;
  BuiltinCall call{*this, options_.precision, e.type, {types.data(), e.args.size()}, values.data(), out};
  row.evaluate(call);
}

void Interpreter::call_function(const Expr& e, Number* out) {
  const Arena::Scope scope(arena_);
  const Function& f = module_.functions[static_cast<std::size_t>(e.index)];
  Frame frame;
  frame.function = &f;
  frame.layout = &layout_of(f);
  frame.numbers = arena_.take(static_cast<std::size_t>(frame.layout->size));
  frame.written.assign(f.variables.size(), false);
  frame.results = out;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    evaluate(e.args[i], frame.numbers + frame.layout->offsets[i]);
    frame.written[i] = true;
  }
  const std::size_t arrays = arrays_.size();
  std::swap(frame_, frame);
  execute(f.body);
  std::swap(frame_, frame);
  arrays_.resize(arrays);
}

void Interpreter::construct_value(const Expr& e, Number* out) {
  if (e.args.empty()) {
    std::fill(out, out + size_of(e.type), Number{});  // zero is all bits zero, of floats too
    return;
  }
  if (e.type.is_struct() || static_cast<int>(e.args.size()) == e.type.components()) {
    for (const Expr& arg : e.args) {
      evaluate(arg, out);
      out += size_of(arg.type);
    }
    return;
  }
  const Arena::Scope scope(arena_);
  const Type given = e.args[0].type;
  const Number* x = read(e.args[0]);
  for (int i = 0; i < e.type.components(); ++i)
    out[i] = given.is_scalar() ? x[0] : cast_number(given.scalar, e.type.scalar, options_.precision, x[i]);
}

}  // namespace ferrite::kernel
