// What can be indexed and assigned to: elements of arrays, components, fields, and chains of them.
#include <fmt/format.h>

#include "models/irsynth/warp_form/lowering.hpp"

namespace ferrite::irsynth::warp {

using Groups = std::vector<std::vector<const syntax::Expr*>>;

namespace {

std::vector<const syntax::Expr*> flat(const Groups& groups) {
  std::vector<const syntax::Expr*> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::string joined(const std::vector<Variable*>& indices) {
  std::string text;
  for (const Variable* v : indices) text += (text.empty() ? "" : ", ") + v->name();
  return text;
}

/// The array behind a slot, which a struct's field is a pointer to.
std::string array_text(const Variable& root) {
  return root.type.reference ? "*(" + root.name() + ")" : root.name();
}

bool has_atomics(ScalarType s, const std::string& operation) {
  const bool wide = is_integer(s) && bits_of(s) >= 32;
  return operation == "add" || operation == "sub" ? wide || is_float(s) : wide;
}

}  // namespace

/// a[i][j, k]: the innermost target, and the indices that are left for it.
Lowering::Subscripted Lowering::subscripted(const syntax::Expr& e, bool as_target) {
  Groups left;
  const Subscripted place = descend(e, {}, as_target, left);
  return {place.target, flat(left)};
}

Lowering::Subscripted Lowering::descend(const syntax::Expr& e, Groups indices, bool as_target, Groups& left) {
  if (e.kind != Kind::subscript) {
    left = std::move(indices);
    const bool through = as_target && e.kind != Kind::name;
    return {through ? target_of(e) : value(e), {}};
  }
  std::vector<const syntax::Expr*> group;
  for (std::size_t i = 1; i < e.args.size(); ++i) group.push_back(&e.args[i]);
  indices.insert(indices.begin(), std::move(group));
  Subscripted place = descend(e.args[0], std::move(indices), as_target, left);
  const ValueType type = stripped(place.target->type);
  const auto dims = static_cast<std::size_t>(type.type.dims);
  if (type.is_array() && flat(left).size() > dims) {
    std::vector<const syntax::Expr*> own = flat(left);
    own.resize(dims);
    place.target = indexed(place.target, own, as_target);
    for (std::size_t used = 0; used < dims; left.erase(left.begin())) used += left[0].size();
  }
  return place;
}

Variable* Lowering::indexed(Variable* target, const std::vector<const syntax::Expr*>& nodes, bool as_target) {
  const ValueType type = stripped(target->type);
  std::vector<Variable*> indices;
  for (const syntax::Expr* node : nodes) indices.push_back(value(*node));
  if (!type.is_array()) {
    if (as_target)
      if (auto slot = slot_at(target, indices)) return slot_reference(*slot, std::nullopt);
    return extract(target, indices);
  }
  for (Variable*& i : indices) i = load(i);
  const Type element = type.type.element();
  const auto origin = origin_of(target);
  const auto inside = origin ? std::optional(origin->element(joined(indices))) : std::nullopt;
  const bool fixed = type.form == ValueType::Form::fixed_array;
  if (as_target && !fixed && (element.is_composite() || element.is_struct()))
    return slot_reference({target, joined(indices), "", element}, inside);
  std::vector<Variable*> arguments{target};
  arguments.insert(arguments.end(), indices.begin(), indices.end());
  Variable* address = call(library("address"), arguments, reference_to(value_of(element)));
  address->origin = inside;
  return address;
}

/// The place of an assignment's target, without reading it.
Variable* Lowering::target_of(const syntax::Expr& e) {
  if (e.kind == Kind::attribute) return attribute(e, target_of(e.args[0]), true);
  if (e.kind == Kind::subscript) {
    const Subscripted place = subscripted(e, true);
    return indexed(place.target, place.indices, true);
  }
  return value(e);
}

Variable* Lowering::slot_reference(Slot slot, std::optional<Origin> origin) {
  Variable* v = add(reference_to(value_of(slot.type)));
  forward(fmt::format("{} = &(wp::index({}, {}){});", v->name(), array_text(*slot.root), slot.indices,
                      slot.access));
  v->slot = std::move(slot);
  v->origin = std::move(origin);
  return v;
}

std::optional<Slot> Lowering::slot_at(const Variable* target, const std::vector<Variable*>& indices) {
  if (!target->slot) return std::nullopt;
  Slot slot = *target->slot;
  const Type type = slot.type;
  if (!type.is_composite()) return std::nullopt;
  std::vector<Variable*> loaded;
  for (Variable* i : indices) loaded.push_back(load(i));
  const bool row = type.is_matrix() && loaded.size() == 1;
  slot.access += fmt::format(".{}({})",
                             row                ? "row_ref"
                             : type.is_matrix() ? "element_ref"
                                                : "component_ref",
                             joined(loaded));
  slot.type = row ? Type::vector(type.columns, type.scalar) : Type::of(type.scalar);
  return slot;
}

std::optional<Slot> Lowering::slot_field(const Variable* target, const std::string& name) {
  if (!target->slot) return std::nullopt;
  Slot slot = *target->slot;
  if (slot.type.is_vector() || slot.type.is_quaternion()) {
    slot.access += fmt::format(".component_ref({})", component_index(name)->name());
    slot.type = Type::of(slot.type.scalar);
    return slot;
  }
  for (const ferrite::kernel::Variable& f : module_.structs[slot.type.structure].fields)
    if (f.name == name && !f.type.is_array()) {
      slot.access += "." + name;
      slot.type = f.type;
      return slot;
    }
  return std::nullopt;
}

/// Stores to a component of an array element; `operation` makes it atomic.
void Lowering::write_slot(const Slot& slot, Variable* v, const std::string& operation) {
  if (v->type.reference) v = copy(v);
  const auto origin = origin_of(slot.root);
  if (origin && !origin->is_root)
    fail({line_, 1}, "components of an array inside a struct have no Warp form");
  const std::string array = array_text(*slot.root);
  const std::string access = fmt::format("[&](auto& _e) -> auto& {{ return _e{}; }}", slot.access);
  const std::string line = operation.empty() ? fmt::format("wp::store(&(wp::index({}, {}){}), {});", array,
                                                           slot.indices, slot.access, v->name())
                                             : fmt::format("wp::array_atomic_{}_slot({}, {}, {}, {});",
                                                           operation, array, v->name(), access, slot.indices);
  forward(line, "// " + line);
  reverse(fmt::format("wp::adj_array_{}_slot({}, {}, {}, {}, {});",
                      operation.empty() ? "store" : "atomic_" + operation, array, slot.root->adjoint(),
                      v->adjoint(), access, slot.indices));
}

/// s.a.b of a local struct s, as a member that can be written: the label "3.a.b".
Variable* Lowering::member_of(const syntax::Expr& e) {
  if (e.kind != Kind::attribute) return nullptr;
  const syntax::Expr& inner = e.args[0];
  Variable* base = inner.kind == Kind::name ? value(inner) : member_of(inner);
  if (base == nullptr || base->type.reference || !base->type.type.is_struct()) return nullptr;
  for (const ferrite::kernel::Variable& f : module_.structs[base->type.type.structure].fields)
    if (f.name == e.text) {
      Variable* member = unnumbered(value_of(f.type), {});
      member->label = base->label + "." + e.text;
      return member;
    }
  return nullptr;
}

Variable* Lowering::aggregate_of(const syntax::Expr& e) {
  Variable* member = member_of(e);
  return member != nullptr && member->type.type.is_struct() ? member : target_of(e);
}

void Lowering::store_element(const syntax::Expr& e, Variable* target, const std::vector<Variable*>& indices,
                             Variable* v) {
  const ValueType type = stripped(target->type);
  std::vector<Variable*> arguments{target};
  arguments.insert(arguments.end(), indices.begin(), indices.end());
  if (type.is_array()) {
    Callee store = library("array_store");
    store.replayed = false;
    arguments.push_back(v);
    call(store, arguments, std::vector<ValueType>{});
  } else if (target->type.reference) {
    const bool row = type.type.is_matrix() && indices.size() == 1;
    const Type part = row ? Type::vector(type.type.columns, type.type.scalar) : Type::of(type.type.scalar);
    Variable* pointer = add(reference_to(value_of(part)));
    std::string loaded;
    for (Variable* i : indices) loaded += ", " + load(i)->name();
    const std::string address =
        fmt::format("{} = wp::indexref({}{});", pointer->name(), target->name(), loaded);
    const std::string store = fmt::format("wp::store({}, {});", pointer->name(), load(v)->name());
    forward(address, "// " + address);
    forward(store, "// " + store);
  } else if (type.type.is_composite()) {
    arguments.push_back(v);
    call(library("assign_inplace"), arguments, std::vector<ValueType>{});
  } else {
    fail(e.place, "this assignment has no Warp form");
  }
}

void Lowering::store_field(const syntax::Expr& e, Variable* aggregate, Variable* v) {
  const ValueType type = stripped(aggregate->type);
  if (type.type.is_vector() || type.type.is_quaternion()) {
    store_element(e, aggregate, {component_index(e.text)}, v);
    return;
  }
  if (!type.type.is_struct() || aggregate->type.reference) {
    Variable* pointer = attribute(e, aggregate, false);
    const std::string store = fmt::format("wp::store({}, {});", pointer->name(), load(v)->name());
    forward(store, "// " + store);
    return;
  }
  if (v->type.reference) v = copy(v);
  forward(fmt::format("{}.{} = {};", aggregate->name(), e.text, v->name()));
  reverse(fmt::format("{}.{} = {{}};", aggregate->adjoint(), e.text));
  const ValueType value_type = v->type;
  if (!value_type.is_array() && (value_type.type.is_struct() || is_float(value_type.type.scalar)))
    reverse(fmt::format("{} += {}.{};", v->adjoint(), aggregate->adjoint(), e.text));
}

/// Whether a component of this type can be updated atomically.
bool is_atomic(Type type, const std::string& operation) {
  return !operation.empty() && !type.is_struct() && has_atomics(type.scalar, operation);
}

}  // namespace ferrite::irsynth::warp
