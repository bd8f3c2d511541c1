// Expressions stay expressions. Only if one has effects are operands moved into variables, because C++ leaves
// the order of operands open and the language evaluates from left to right.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/emit/emitter.hpp"

namespace ferrite::kernel {

namespace {

std::string enclosed(std::string text, int binds, int wanted) {
  return binds < wanted ? "(" + std::move(text) + ")" : std::move(text);
}

bool is_half(Type t) {
  return !t.is_array() && (t.is_scalar() || t.is_composite()) && is_float(t.scalar) &&
         bits_of(t.scalar) == 16;
}

/// Operators that 16-bit floats have themselves; everything else is computed in f32.
bool half_has(Builtin id) {
  switch (id) {
    case Builtin::neg:
    case Builtin::add:
    case Builtin::sub:
    case Builtin::mul:
    case Builtin::div:
    case Builtin::lt:
    case Builtin::le:
    case Builtin::gt:
    case Builtin::ge:
    case Builtin::eq:
    case Builtin::ne:
      return true;
    default:
      return false;
  }
}
/// They only pass values on.
bool moves(Builtin id) {
  return id == Builtin::where || id == Builtin::pos || id == Builtin::matrix_from_rows;
}

}  // namespace

std::string Emitter::value(const Expr& e, int wanted) {
  const bool before = ordered_;
  ordered_ = !is_pure(module_, e);
  std::string text = expression(e, wanted);
  ordered_ = before;
  return text;
}

std::string Emitter::new_name() {
  std::string name;
  do name = fmt::format("t{}", scope_.temporaries++);
  while (scope_.taken.contains(name));
  return name;
}

Expr Emitter::named(const std::string& name, Type type) {
  Expr e;
  e.kind = ExprKind::variable;
  e.type = type;
  e.index = static_cast<int>(scope_.names.size());
  scope_.names.push_back(name);
  scope_.declared_by.push_back(nullptr);
  scope_.ahead_of.push_back(nullptr);
  return e;
}

std::string Emitter::temporary(Type type, const std::string& text) {
  const std::string name = new_name();
  line(fmt::format("const {} {} = {};", type_name(type), name, text));
  return name;
}

/// The operands of an expression. One that is followed by an operand with effects is computed first.
std::vector<std::string> Emitter::operands(const Expr& e, const std::vector<int>& wanted) {
  std::size_t last = 0;
  if (ordered_)
    for (std::size_t i = 0; i < e.args.size(); ++i)
      if (!is_pure(module_, e.args[i])) last = i;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    const Expr& arg = e.args[i];
    const bool fixed =
        arg.kind == ExprKind::literal || arg.type.is_array() ||
        (i == 0 && e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first);
    if (i < last && !fixed)
      texts.push_back(temporary(arg.type, expression(arg)));
    else
      texts.push_back(expression(arg, i < wanted.size() ? wanted[i] : int{lowest}));
  }
  return texts;
}

std::string Emitter::expression(const Expr& e, int wanted) {
  switch (e.kind) {
    case ExprKind::literal: {
      std::string text = literal(e.type.scalar, e.number);
      return enclosed(text, text[0] == '-' ? unary : primary, wanted);
    }
    case ExprKind::variable:
      return scope_.names[static_cast<std::size_t>(e.index)];
    case ExprKind::apply:
      return apply(e, wanted);
    case ExprKind::call:
      return called(e);
    case ExprKind::cast:
      return converted(operands(e, {})[0], e.args[0].type, e.type);
    case ExprKind::construct:
      return constructed(e);
    case ExprKind::element:
      return element(e);
    case ExprKind::component:
      return component(e);
    case ExprKind::field: {
      const std::uint16_t s = e.args[0].type.structure;
      return operands(e, {primary})[0] + "." +
             field_name(module_.structs[s].fields[static_cast<std::size_t>(e.index)].name);
    }
    default:
      return choice(e, wanted);
  }
}

/// and, or, if-else: what may stay unevaluated.
std::string Emitter::choice(const Expr& e, int wanted) {
  const bool conditional = e.kind == ExprKind::conditional;
  bool effects = false;
  for (std::size_t i = 1; i < e.args.size() && ordered_; ++i) effects |= !is_pure(module_, e.args[i]);
  if (!effects) {
    if (conditional) {
      const std::vector<std::string> parts = operands(e, {logical_or, logical_or, ternary});
      return enclosed(fmt::format("{} ? {} : {}", parts[0], parts[1], parts[2]), ternary, wanted);
    }
    const bool both = e.kind == ExprKind::logical_and;
    const int binds = both ? logical_and : logical_or;
    const std::vector<std::string> parts = operands(e, {e.args[0].kind == e.kind ? binds : int{bits}, bits});
    return enclosed(fmt::format("{} {} {}", parts[0], both ? "&&" : "||", parts[1]), binds, wanted);
  }
  const std::string name = new_name();
  const std::string condition = expression(e.args[0]);
  line(fmt::format("{} {} = {};", type_name(e.type), name, conditional ? zero(e.type) : condition));
  line(
      fmt::format("if ({}{}) {{", e.kind == ExprKind::logical_or ? "!" : "", conditional ? condition : name));
  ++indent_;
  const std::string chosen = expression(e.args[1]);
  line(fmt::format("{} = {};", name, chosen));
  --indent_;
  if (conditional) {
    line("} else {");
    ++indent_;
    const std::string other = expression(e.args[2]);
    line(fmt::format("{} = {};", name, other));
    --indent_;
  }
  line("}");
  return name;
}

std::string Emitter::element(const Expr& e) {
  return element_text(operands(e, {primary}), e.args.size() - 1, e.args.data() + 1);
}

std::string Emitter::element_text(const std::vector<std::string>& parts, std::size_t axes,
                                  const Expr* first) {
  const bool wraps = scope_.range.may_be_negative(first, axes);
  (wraps ? wrapped_ : axes_).insert(axes);
  const std::string indices = fmt::format(
      "{}", fmt::join(parts.begin() + 1, parts.begin() + 1 + static_cast<std::ptrdiff_t>(axes), ", "));
  if (wraps) return fmt::format("{}.at({})", parts[0], indices);
  return axes == 1 ? fmt::format("{}[{}]", parts[0], indices) : fmt::format("{}({})", parts[0], indices);
}

std::string Emitter::component(const Expr& e) {
  const std::vector<std::string> parts = operands(e, {primary});
  const Type whole = e.args[0].type;
  std::string text = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool wraps = scope_.range.may_be_negative(&e.args[i], 1);
    if (wraps) support("from_end");
    text += wraps ? fmt::format("[from_end({}, {})]", parts[i], i == 1 ? whole.rows : whole.columns)
                  : "[" + parts[i] + "]";
  }
  return text;
}

std::string Emitter::constructed(const Expr& e) {
  if (e.args.empty()) return zero(e.type);
  const std::vector<std::string> parts = operands(e, {});
  const bool whole = e.type.is_struct() || static_cast<int>(parts.size()) == e.type.components();
  return whole ? fmt::format("{}{{{}}}", type_name(e.type), fmt::join(parts, ", "))
               : converted(parts[0], e.args[0].type, e.type);
}

std::string Emitter::called(const Expr& e) {
  add_function(e.index);
  return fmt::format("{}({})", function_name(e.index), fmt::join(operands(e, {}), ", "));
}

/// An assertion's message, with its place, as a C string.
std::string Emitter::assertion(Place place, std::string_view text) const {
  const std::string where = module_.source ? fmt::format("{}:{}: ", module_.source->file, place.line) : "";
  std::string quoted = "\"";
  for (const char c : where + std::string(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "\"";
}

std::string Emitter::atomic(const Expr& e) {
  const Type array = e.args[0].type, held = array.element();
  const auto values = static_cast<std::size_t>(1 + array.dims);
  std::vector<Type> types(e.args.size() - values + 1, held);
  types[0] = held.array(1);
  const std::string_view text = atomic_text(e.builtin, types, e.place);
  std::vector<int> places(e.args.size(), lowest);
  places[0] = primary;
  if (text.find("-$1") != std::string_view::npos) places[values] = primary;
  const std::vector<std::string> parts = operands(e, places);
  std::vector<std::string> args = {element_text(parts, array.dims, e.args.data() + 1)};
  args.insert(args.end(), parts.begin() + array.dims + 1, parts.end());
  return expand(text, types, held, args);
}

std::string_view Emitter::atomic_text(Builtin id, const std::vector<Type>& types, Place place) {
  const Type held = types[0].element();
  if (target_ == Target::cuda && bits_of(held.scalar) == 8)
    fail(place, fmt::format("{} of {}: GPUs have no atomics of 8 bits", info(id).name, to_string(held)));
  need(id, types, held);
  return find_rule(id, types, target_)->in(target_);
}

std::string Emitter::apply(const Expr& e, int wanted) {
  const BuiltinInfo& row = info(e.builtin);
  if (row.effect == Effect::writes_array) return atomic(e);
  if (e.builtin == Builtin::pos) return expression(e.args[0], wanted);
  if (e.builtin == Builtin::mul && options_.separate_products && target_ == Target::cuda &&
      e.type.is_float() && !is_half(e.type))
    return fmt::format("{}({})", e.type.scalar == ScalarType::f64 ? "__dmul_rn" : "__fmul_rn",
                       fmt::join(operands(e, {}), ", "));
  std::vector<Type> types;
  for (const Expr& arg : e.args) types.push_back(arg.type);
  Type result = e.type;
  // 16-bit composites have no functions of their own, 16-bit scalars only operators.
  bool widened = false;
  for (const Type t : types)
    widened |= is_half(t) && !moves(e.builtin) && !(t.is_scalar() && half_has(e.builtin));
  for (const Type t : types) widened |= is_half(t) && t.is_composite() && !moves(e.builtin);
  const auto wide = [&](Type t) { return is_half(t) ? t.with_scalar(ScalarType::f32) : t; };
  if (widened) {
    for (Type& t : types) t = wide(t);
    result = wide(result);
  }
  if (e.builtin == Builtin::expect_near && types.size() == 2) types.push_back(Type::of(types[0].scalar));
  const EmitRule* rule = find_rule(e.builtin, types, target_);
  std::string_view text = rule->in(target_);
  std::string_view symbol;
  // A literal divisor other than -1 divides safely.
  if (e.builtin == Builtin::mod && rule->id == Builtin::mod && e.args[1].kind == ExprKind::literal &&
      e.type.is_int() && e.args[1].number.integer != -1)
    text = "$0 % $1";
  else
    need(e.builtin, types, result);
  int binds = primary;
  std::vector<int> places;
  const bool infix = text.starts_with("$0 ");
  if (text == "$0 ? $1 : $2") {
    binds = ternary;
    places = {logical_or, logical_or, ternary};
  } else if (infix) {
    symbol = text.substr(3, text.rfind(' ') - 3);
    binds = symbol == "*" || symbol == "/" || symbol == "%"   ? product
            : symbol == "+" || symbol == "-"                  ? sum
            : symbol == "<<" || symbol == ">>"                ? shift
            : symbol == "&" || symbol == "|" || symbol == "^" ? bits
                                                              : compare;
    const bool plain = binds == product || binds == sum;
    places = plain              ? std::vector<int>{binds, binds + 1}
             : binds == compare ? std::vector<int>{sum, sum}
                                : std::vector<int>{unary, unary};
  } else if (text.ends_with("$0") && text.size() == 3) {
    binds = unary;
    places = {primary};
  } else {
    // Between commas any expression is safe; elsewhere operands may need parentheses.
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::string key = fmt::format("${}", i);
      const std::size_t at = text.find(key);
      const bool apart = at != std::string_view::npos && (at == 0 || text[at - 1] != '(') &&
                         text.substr(at + 2, 1) != "," && text.substr(at + 2, 1) != ")";
      const bool operand =
          at != std::string_view::npos && (text.substr(at + 2, 1) == " " || text.substr(at + 2, 1) == "." ||
                                           (at > 1 && text[at - 1] == ' ' && text[at - 2] != ','));
      places.push_back(apart || operand ? primary : lowest);
    }
  }
  std::vector<std::string> args = operands(e, places);
  if (widened)
    for (std::size_t i = 0; i < args.size(); ++i) args[i] = converted(args[i], e.args[i].type, types[i]);
  if (e.builtin == Builtin::expect_near && args.size() == 2)
    args.push_back(literal(
        types[0].scalar, from_real(types[0].scalar == ScalarType::f64 ? 1e-6 : static_cast<double>(1e-6f))));
  if (row.effect == Effect::asserts) args.push_back(assertion(e.place, fmt::format("{} failed", row.name)));
  std::string done = expand(text, types, result, args);
  // Arithmetic of narrow integers is done in int, and wraps around by the cast.
  const bool narrow = e.type.is_int() && bits_of(e.type.scalar) < 32 &&
                      (binds < primary || e.builtin == Builtin::min || e.builtin == Builtin::max) &&
                      binds != ternary;
  if (narrow) return fmt::format("{}({})", scalar_name(e.type.scalar), done);
  if (widened && result != e.type) return converted(done, result, e.type);
  return enclosed(std::move(done), binds, wanted);
}

void Emitter::fail(Place place, std::string_view problem) const {
  throw KernelError(module_.source.get(), place, problem);
}

}  // namespace ferrite::kernel
