// Statements: names are bound to numbers again, arrays and components are stored to.
#include <fmt/format.h>

#include "models/irsynth/warp_form/lowering.hpp"

namespace ferrite::irsynth::warp {

namespace {

/// The atomic that `a[i] += x` is in Warp; empty if it is none.
std::string atomic_operation(Builtin builtin) {
  switch (builtin) {
    case Builtin::add:
      return "add";
    case Builtin::sub:
      return "sub";
    case Builtin::bit_and:
      return "and";
    case Builtin::bit_or:
      return "or";
    case Builtin::bit_xor:
      return "xor";
    default:
      return "";
  }
}

}  // namespace

void Lowering::statements(const std::vector<syntax::Stmt>& body) {
  for (const syntax::Stmt& s : body) statement(s);
}

void Lowering::statement(const syntax::Stmt& s) {
  using K = syntax::StmtKind;
  at(start_of(s));
  switch (s.kind) {
    case K::expression:
      if (s.values[0].kind == Kind::call)
        called(s.values[0], 1);
      else
        value(s.values[0]);
      return;
    case K::assign:
      return assign(s);
    case K::update:
      return update(s);
    case K::if_:
      return if_(s, 0);
    case K::for_:
      return for_(s);
    case K::while_:
      return while_(s);
    case K::break_:
    case K::continue_:
      return leave(s, s.kind == K::continue_);
    case K::pass:
      return;
    case K::return_:
      return return_(s);
    case K::assert_:
      return assertion(s);
  }
}

void Lowering::assign(const syntax::Stmt& s) {
  if (s.targets.size() > 1) return assign_tuple(s);
  const syntax::Expr& target = s.targets[0];
  Variable* v = value(s.values[0]);
  if (target.kind == Kind::name) return assign_name(target, s.values[0], v);
  if (v->type.reference) v = copy(v);
  if (target.kind == Kind::subscript) {
    const Subscripted place = subscripted(target, true);
    std::vector<Variable*> indices;
    for (const syntax::Expr* node : place.indices) indices.push_back(value(*node));
    if (const auto slot = slot_at(place.target, indices)) return write_slot(*slot, v, "");
    return store_element(target, place.target, indices, v);
  }
  Variable* aggregate = aggregate_of(target.args[0]);
  if (const auto slot = slot_field(aggregate, target.text)) return write_slot(*slot, v, "");
  store_field(target, aggregate, v);
}

void Lowering::assign_tuple(const syntax::Stmt& s) {
  std::vector<Variable*> values;
  if (s.values[0].kind == Kind::tuple) {
    for (const syntax::Expr& e : s.values[0].args) values.push_back(value(e));
  } else {
    at(start_of(s.values[0]));
    values = called(s.values[0], s.targets.size());
  }
  for (std::size_t i = 0; i < s.targets.size(); ++i) {
    if (s.targets[i].kind != Kind::name) fail(s.targets[i].place, "Warp unpacks to names only");
    const Variable* before = symbols_.find(s.targets[i].text);
    if (before != nullptr && before->type.reference != values[i]->type.reference)
      fail(s.targets[i].place, "Warp refuses to unpack an element to a variable that held a value, and back");
    symbols_.set(s.targets[i].text, values[i]);
  }
}

void Lowering::assign_name(const syntax::Expr& target, const syntax::Expr& from, Variable* v) {
  Variable* bound = from.kind == Kind::name || v->type.reference ? copy(v) : v;
  if (bound->type.is_array()) bound->origin = v->origin;
  symbols_.set(target.text, bound);
}

void Lowering::update(const syntax::Stmt& s) {
  const syntax::Expr& target = s.targets[0];
  if (names_.is_function(info(s.builtin).name))
    fail(s.place, fmt::format("an update by the function '{}' has no Warp form: write {}(...)",
                              info(s.builtin).name, info(s.builtin).name));
  if (target.kind == Kind::subscript) return update_element(s);
  if (target.kind == Kind::attribute) return update_field(s);
  Variable* v = value(s.values[0]);
  Variable* before = value(target);
  symbols_.set(target.text, apply(s.builtin, {before, v}));
}

void Lowering::update_element(const syntax::Stmt& s) {
  const syntax::Expr& target = s.targets[0];
  const std::string operation = atomic_operation(s.builtin);
  const Subscripted place = subscripted(target, true);
  const ValueType type = stripped(place.target->type);
  std::vector<Variable*> indices;
  for (const syntax::Expr* node : place.indices) indices.push_back(value(*node));
  std::vector<Variable*> arguments{place.target};
  arguments.insert(arguments.end(), indices.begin(), indices.end());
  const bool narrow = is_integer(type.type.scalar) && bits_of(type.type.scalar) < 32;
  if (type.is_array() && !operation.empty() && !narrow) {
    arguments.push_back(value(s.values[0]));
    const Builtin atomic = find_builtin("atomic_" + operation)->id;
    call(library(atomic, {type}), arguments, value_of(type.type.element()));
    return;
  }
  if (!type.is_array() && !place.target->type.reference && !operation.empty()) {
    const bool bits = operation != "add" && operation != "sub";
    arguments.push_back(value(s.values[0]));
    call(library(fmt::format("{}{}_inplace", bits ? "bit_" : "", operation), !bits), arguments,
         std::vector<ValueType>{});
    return;
  }
  for (Variable*& i : indices) i = load(i);
  const auto slot = slot_at(place.target, indices);
  if (slot && is_atomic(slot->type, operation)) return write_slot(*slot, value(s.values[0]), operation);
  arguments.resize(1);
  arguments.insert(arguments.end(), indices.begin(), indices.end());
  Variable* before = type.is_array()
                         ? call(library("address"), arguments, reference_to(value_of(type.type.element())))
                         : extract(place.target, indices);
  Variable* v = value(s.values[0]);
  Variable* after = apply(s.builtin, {before, v});
  if (slot) return rewrite_slot(*slot, after, s);
  store_element(target, place.target, indices, after);
}

void Lowering::update_field(const syntax::Stmt& s) {
  const syntax::Expr& target = s.targets[0];
  const std::string operation = atomic_operation(s.builtin);
  Variable* aggregate = aggregate_of(target.args[0]);
  const auto slot = slot_field(aggregate, target.text);
  if (slot && is_atomic(slot->type, operation)) return write_slot(*slot, value(s.values[0]), operation);
  Variable* before = attribute(target, aggregate, false);
  Variable* v = value(s.values[0]);
  Variable* after = apply(s.builtin, {before, v});
  if (slot) return rewrite_slot(*slot, after, s);
  store_field(target, aggregate, after);
}

/// Not atomic: computed from the old value, whose adjoint Warp has no way to write.
void Lowering::rewrite_slot(const Slot& slot, Variable* after, const syntax::Stmt& s) {
  if (is_float(slot.type.scalar) && !out_.no_backward)
    out_.no_backward.emplace(&source_, s.place,
                             "Warp has no gradient of this update of a component: use enable_backward=False");
  write_slot(slot, after, "");
}

void Lowering::return_(const syntax::Stmt& s) {
  std::vector<Variable*> values;
  if (!s.values.empty()) {
    const syntax::Expr& e = s.values[0];
    if (e.kind == Kind::tuple) {
      for (const syntax::Expr& part : e.args) values.push_back(value(part));
    } else {
      values.push_back(value(e));
    }
    for (Variable*& v : values)
      if (v->type.reference) v = copy(v);
    out_.results = values;
  }
  const std::string label = fmt::format("label{}", labels_);
  if (values.size() == 1) {
    forward(fmt::format("return {};", values[0]->name()), "goto " + label + ";");
    reverse(values[0]->adjoint() + " += adj_ret;");
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      forward(fmt::format("ret_{} = {};", i, values[i]->name()));
      reverse(fmt::format("{} += adj_ret_{};", values[i]->adjoint(), i));
    }
    forward("return;", "goto " + label + ";");
  }
  reverse(label + ":;");
  ++labels_;
}

void Lowering::assertion(const syntax::Stmt& s) {
  const Variable* condition = load(value(s.values[0]));
  std::string_view text = lines_[static_cast<std::size_t>(s.place.line) - 1];
  text.remove_prefix(static_cast<std::size_t>(s.place.column) - 1);
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  std::string quoted;
  for (const char c : text) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
  forward(fmt::format("assert(((void)\"{}\",{}));", quoted, condition->name()));
}

}  // namespace ferrite::irsynth::warp
