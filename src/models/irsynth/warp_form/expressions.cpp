// Expressions: operands from left to right, each with the next number.
#include <fmt/format.h>

#include "models/irsynth/warp_form/lowering.hpp"

namespace ferrite::irsynth::warp {

Variable* Lowering::value(const syntax::Expr& e) {
  at(start_of(e));
  switch (e.kind) {
    case Kind::name:
      return name(e);
    case Kind::integer:
      return add(integer(static_cast<std::int64_t>(e.integer)));
    case Kind::real:
      return add(real(e.real));
    case Kind::boolean:
      return add(boolean(e.integer != 0));
    case Kind::attribute:
      return attribute(e);
    case Kind::call:
      return called(e, 1)[0];
    case Kind::subscript: {
      const Subscripted place = subscripted(e, false);
      return indexed(place.target, place.indices, false);
    }
    case Kind::unary:
      return unary(e);
    case Kind::binary: {
      Variable* a = value(e.args[0]);
      Variable* b = value(e.args[1]);
      if (const auto user = names_.find_operator(e.builtin, a->type.type, b->type.type, e.place))
        return function(module_.functions[static_cast<std::size_t>(*user)], {a, b})[0];
      return apply(e.builtin, {a, b});
    }
    case Kind::compare:
      return compare(e);
    case Kind::logical_and:
    case Kind::logical_or:
      return logical(e);
    case Kind::conditional:
      return conditional(e);
    default:
      fail(e.place, "this has no Warp form");
  }
}

/// A number, wp.constant(...), math.sqrt(2.0), wp.float64(0.1) or wp.vec3(...) that Python worked out.
std::optional<Constant> Lowering::static_value(const syntax::Expr& e, Type* type) const {
  if (const auto c = names_.constant(e)) {
    using C = ModuleChecker::Constant::Kind;
    *type = c->kind == C::real ? float_type : c->kind == C::boolean ? bool_type : int_type;
    return c->kind == C::real      ? real(c->real)
           : c->kind == C::boolean ? boolean(c->integer != 0)
                                   : integer(c->integer);
  }
  std::optional<Constant> held;
  if (e.kind == Kind::name)
    names_.with_constant(e.text, [&](const syntax::Expr& value) { held = composite(value, type); });
  return held;
}

std::optional<Constant> Lowering::composite(const syntax::Expr& e, Type* type) const {
  if (e.kind != Kind::call) return std::nullopt;
  const auto called_name = names_.warp_name(e.args[0]);
  if (!called_name) return std::nullopt;
  if (*called_name == "constant" && e.args.size() == 2) return composite(e.args[1], type);
  const auto made = type_from_name(*called_name);
  if (!made) return std::nullopt;
  std::vector<Constant> parts;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    Type unused;
    const auto part = static_value(e.args[i], &unused);
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  *type = *made;
  if (made->is_scalar())
    return parts.size() == 1 ? std::optional(typed(made->scalar, parts[0])) : std::nullopt;
  const auto count = static_cast<std::size_t>(made->components());
  if (parts.empty()) parts.assign(count, real(0));
  if (parts.size() == 1) parts.assign(count, parts[0]);
  if (parts.size() != count) return std::nullopt;
  std::string list;
  for (const Constant& part : parts) {
    const double x = part.kind == Constant::Kind::real ? part.real : static_cast<double>(part.integer);
    const std::string text = !is_float(made->scalar)           ? fmt::format("{}", part.integer)
                             : made->scalar == ScalarType::f64 ? real(x).text
                                                               : real(static_cast<float>(x)).text;
    list += (list.empty() ? "" : ", ") + text;
  }
  Constant c{Constant::Kind::composite};
  c.text = fmt::format("wp::initializer_array<{},{}>{{{}}}", count, scalar_text(made->scalar), list);
  return c;
}

Variable* Lowering::name(const syntax::Expr& e) {
  if (Variable* found = symbols_.find(e.text)) return found;
  Type type;
  const auto constant = static_value(e, &type);
  if (!constant) fail(e.place, fmt::format("'{}' has no Warp form", e.text));
  Variable* v = add(value_of(type), constant);
  symbols_.set(e.text, v);
  return v;
}

Variable* Lowering::attribute(const syntax::Expr& e) {
  if (e.args[0].kind == Kind::name && symbols_.find(e.args[0].text) == nullptr) {
    Type type;
    if (const auto constant = static_value(e, &type)) return add(value_of(type), constant);
  }
  return attribute(e, value(e.args[0]), false);
}

Variable* Lowering::component_index(const std::string& text) {
  return add(integer(static_cast<std::int64_t>(std::string_view("xyzw").find(text))));
}

Variable* Lowering::attribute(const syntax::Expr& e, Variable* aggregate, bool as_target) {
  const ValueType type = stripped(aggregate->type);
  if (as_target) {
    const auto origin = origin_of(aggregate);
    if (auto slot = slot_field(aggregate, e.text))
      return slot_reference(
          *slot, origin && type.type.is_struct() ? std::optional(origin->field(e.text)) : std::nullopt);
  }
  if (!type.is_array() && (type.type.is_vector() || type.type.is_quaternion()))
    return extract(aggregate, {component_index(e.text)});
  // A field of a struct, or the shape of an array.
  ValueType field{ValueType::Form::shape};
  if (type.is_array() && e.text != "shape") fail(e.place, "this attribute has no Warp form");
  if (!type.is_array())
    for (const ferrite::kernel::Variable& f : module_.structs[type.type.structure].fields)
      if (f.name == e.text) field = value_of(f.type);
  Variable* pointer = add(reference_to(field));
  const auto origin = type.is_array() ? std::nullopt : origin_of(aggregate);
  if (origin) {
    pointer->origin = origin->field(e.text);
    forward(fmt::format("{} = {};", pointer->name(), pointer->origin->pointer));
  } else {
    forward(fmt::format("{} = &({}{}{});", pointer->name(), aggregate->name(),
                        aggregate->type.reference ? "->" : ".", e.text));
  }
  const bool sums = field.form == ValueType::Form::value && !field.is_array() &&
                    (field.type.is_struct() || is_float(field.type.scalar));
  reverse(fmt::format("{}.{} {} {};", aggregate->adjoint(), e.text, sums ? "+=" : "=", pointer->adjoint()));
  return pointer;
}

Variable* Lowering::extract(Variable* target, const std::vector<Variable*>& indices) {
  std::vector<Variable*> arguments{target};
  arguments.insert(arguments.end(), indices.begin(), indices.end());
  const ValueType of = stripped(target->type);
  if (of.form == ValueType::Form::shape)
    return call(library("extract", false), arguments, value_of(int_type));
  const bool row = of.type.is_matrix() && indices.size() == 1;
  return call(library("extract"), arguments,
              value_of(row ? Type::vector(of.type.columns, of.type.scalar) : Type::of(of.type.scalar)));
}

Variable* Lowering::unary(const syntax::Expr& e) {
  Variable* x = value(e.args[0]);
  if (e.builtin == Builtin::neg && x->constant && x->constant->kind != Constant::Kind::composite &&
      x->constant->kind != Constant::Kind::boolean) {
    const Constant& c = *x->constant;
    const Constant negated = c.kind == Constant::Kind::real ? real(-c.real) : integer(-c.integer);
    const bool literal = e.args[0].kind == Kind::integer || e.args[0].kind == Kind::real;
    if (!literal) return add(negated);
    x->constant = negated;
    return x;
  }
  return apply(e.builtin, {x});
}

Variable* Lowering::apply(Builtin builtin, const std::vector<Variable*>& arguments) {
  std::vector<ValueType> types;
  std::vector<Type> plain;
  for (const Variable* a : arguments) {
    types.push_back(stripped(a->type));
    plain.push_back(a->type.type);
  }
  if (builtin == Builtin::where) plain[0] = bool_type;
  const auto result = info(builtin).result(plain);
  if (builtin == Builtin::not_) return call(library(builtin, types), arguments, value_of(bool_type));
  if (!result) fail({line_, 1}, fmt::format("'{}' has no Warp form here", info(builtin).name));
  if (result->kind == Type::Kind::none) {
    call(library(builtin, types), arguments, std::vector<ValueType>{});
    return nullptr;
  }
  return call(library(builtin, types), arguments, value_of(*result));
}

Variable* Lowering::compare(const syntax::Expr& e) {
  std::vector<Variable*> operands;
  for (const syntax::Expr& arg : e.args) operands.push_back(value(arg));
  Variable* result = add(value_of(bool_type));
  std::string text = std::string(e.comparisons.size(), '(') + load(operands[0])->name();
  Variable* previous = nullptr;
  for (std::size_t i = 0; i < e.comparisons.size(); ++i) {
    const std::string_view symbol = info(e.comparisons[i]).symbol;
    if (previous != nullptr) previous = load(previous);
    Variable* next = load(operands[i + 1]);
    text += previous == nullptr ? fmt::format(" {} {})", symbol, next->name())
                                : fmt::format(" && ({} {} {}))", previous->name(), symbol, next->name());
    previous = next;
  }
  forward(fmt::format("{} = {};", result->name(), text));
  return result;
}

Variable* Lowering::logical(const syntax::Expr& e) {
  // a and b and c is one node in Python.
  std::vector<const syntax::Expr*> operands;
  const syntax::Expr* left = &e;
  do {
    operands.insert(operands.begin(), &left->args[1]);
    left = &left->args[0];
  } while (left->kind == e.kind && left->parenthesis.line == 0);
  operands.insert(operands.begin(), left);
  const bool all = e.kind == Kind::logical_and;
  Variable* result = add(value_of(bool_type));
  forward(fmt::format("{} = {};", result->name(), load(value(*operands[0]))->name()));
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const std::string guard = fmt::format("if ({}{}) {{", all ? "" : "!", result->name());
    forward(guard);
    reverse("}");
    indent_ += "    ";
    const Variable* next = load(value(*operands[i]));
    forward(fmt::format("{0} = {0} {1} {2};", result->name(), all ? "&&" : "||", next->name()));
    indent_.resize(indent_.size() - 4);
    forward("}");
    reverse(guard);
  }
  return result;
}

Variable* Lowering::conditional(const syntax::Expr& e) {
  Variable* condition = value(e.args[0]);
  if (condition->constant) return value(e.args[condition->constant->truth() ? 1 : 2]);
  std::vector<Variable*> choices{condition};
  for (const std::size_t branch : {std::size_t{1}, std::size_t{2}}) {
    begin_if(condition, branch == 2);
    Variable* v = value(e.args[branch]);
    choices.push_back(v->type.reference ? copy(v) : v);
    end_if(condition, branch == 2);
  }
  return call(library("where"), choices, stripped(choices[1]->type));
}

}  // namespace ferrite::irsynth::warp
