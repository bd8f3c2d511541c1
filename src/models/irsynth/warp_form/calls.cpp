// Calls: casts, constructors, builtins and functions of the module.
#include <fmt/format.h>

#include "kernel/builtins/library.hpp"
#include "models/irsynth/warp_form/lowering.hpp"

namespace ferrite::irsynth::warp {

/// Warp evaluates an argument, and once more if it is a constant with a path: wp.pi takes two numbers.
Variable* Lowering::argument(const syntax::Expr& e) {
  Variable* v = value(e);
  if (e.kind == Kind::attribute && v->constant && v->constant->kind != Constant::Kind::composite &&
      names_.constant(e) && e.args[0].kind == Kind::name && symbols_.find(e.args[0].text) == nullptr)
    return add(v->type, v->constant);
  return v;
}

/// Evaluated in the order of the text, returned in the order of the parameters.
std::vector<Variable*> Lowering::arguments(const syntax::Expr& e,
                                           const std::vector<std::string>& parameters) {
  std::vector<Variable*> positional, named(parameters.size(), nullptr);
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    Variable* v = argument(e.args[i]);
    const std::string& keyword = e.keywords[i - 1];
    if (keyword.empty()) {
      positional.push_back(v);
      continue;
    }
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (parameters[p] == keyword) named[p] = v;
  }
  for (std::size_t p = positional.size(); p < named.size() && named[p] != nullptr; ++p)
    positional.push_back(named[p]);
  return positional;
}

std::vector<Variable*> Lowering::called(const syntax::Expr& e, std::size_t outputs) {
  const syntax::Expr& callee = e.args[0];
  auto warp_name = names_.warp_name(callee);
  std::string text = callee.text;
  if (!warp_name && callee.kind == Kind::name)  // vec = wp.vec3
    names_.with_constant(text, [&](const syntax::Expr& alias) { warp_name = names_.warp_name(alias); });
  if (warp_name) {
    text = *warp_name;
    if (text == "zeros") return {fixed_array(e)};
    if (is_library_function(text)) return {call(library(text), arguments(e), value_of(float_type))};
    if (const auto type = type_from_name(text)) {
      if (type->is_scalar()) return {cast(type->scalar, text, e)};
      return {constructed(*type, e)};
    }
  } else if (text == "float" || text == "int" || text == "bool") {
    return {cast(type_from_name(text)->scalar, text, e)};
  } else if (const auto index = names_.find_struct(text)) {
    return {constructed(Type::structure_of(static_cast<std::size_t>(*index)), e)};
  } else if (const auto called = names_.find_function(text, callee.place)) {
    return function(module_.functions[static_cast<std::size_t>(*called)], e);
  }
  const BuiltinInfo* row = find_builtin(text);
  if (row == nullptr) fail(callee.place, fmt::format("'{}' has no Warp form", text));
  return builtin(*row, e, outputs);
}

Variable* Lowering::cast(ScalarType scalar, const std::string& native, const syntax::Expr& e) {
  const ValueType type = value_of(Type::of(scalar));
  const std::vector<Variable*> given = arguments(e, {"x"});
  const bool exact = native == "float64" || native == "int64" || native == "uint64";
  if (exact && given.size() == 1 && given[0]->constant) {  // a literal of 64 bits from the start
    const std::string text = typed(scalar, *given[0]->constant).text;
    given[0]->type = type;
    given[0]->constant.reset();
    forward(fmt::format("{} = {};", given[0]->name(), text));
    return given[0];
  }
  if (scalar == ScalarType::bool_) return call({native, "", false}, given, type);
  return call(library(native, is_float(scalar)), given, type);
}

Variable* Lowering::constructed(Type type, const syntax::Expr& e) {
  if (type.is_struct()) {
    const Struct& s = module_.structs[type.structure];
    std::vector<std::string> fields;
    for (const ferrite::kernel::Variable& f : s.fields) fields.push_back(f.name);
    return call({s.name, "adj_" + s.name}, arguments(e, fields), value_of(type));
  }
  std::vector<Variable*> given = arguments(e, {"x", "y", "z", "w"});
  for (Variable*& v : given)  // literals take the type of the components
    if (v->constant && v->type.type.is_scalar() && v->type.type.scalar != type.scalar)
      v = unnumbered(value_of(Type::of(type.scalar)), typed(type.scalar, *v->constant));
  const std::string native = type.is_vector() ? "vec_t" : type.is_matrix() ? "mat_t" : "quat_t";
  return call({type_text(value_of(type), module_), "wp::adj_" + native}, given, value_of(type));
}

/// An integer that Warp knows while it reads the text: not 2 * N.
std::int64_t Lowering::known(const Variable* v, const syntax::Expr& e) const {
  if (!v->constant || v->constant->kind != Constant::Kind::integer)
    fail(start_of(e), "Warp wants a number or the name of one here");
  return v->constant->integer;
}

/// wp.zeros(shape=(2, 3), dtype=float)
Variable* Lowering::fixed_array(const syntax::Expr& e) {
  std::vector<std::int64_t> extents;
  const syntax::Expr *shape = nullptr, *dtype = nullptr;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const std::string& keyword = e.keywords[i - 1];
    (keyword == "shape" || (keyword.empty() && i == 1) ? shape : dtype) = &e.args[i];
  }
  if (shape->kind == Kind::tuple) {
    at(start_of(*shape));
    std::vector<Variable*> parts;
    for (const syntax::Expr& part : shape->args) {
      parts.push_back(value(part));
      extents.push_back(known(parts.back(), part));
    }
    ValueType tuple{ValueType::Form::tuple};
    tuple.size = static_cast<int>(parts.size());
    call(library("tuple", false), parts, tuple);
  } else {
    extents.push_back(known(argument(*shape), *shape));
  }
  const Type element = names_.annotation(*dtype);
  ValueType type{ValueType::Form::fixed_array, element.array(static_cast<int>(extents.size())), 1};
  for (const std::int64_t n : extents) type.size *= static_cast<int>(n);
  std::vector<Variable*> given;
  for (const std::int64_t n : extents) given.push_back(unnumbered(value_of(int_type), integer(n)));
  return call({type_text(type, module_), "", false}, given, type);
}

std::vector<Variable*> Lowering::builtin(const BuiltinInfo& row, const syntax::Expr& e, std::size_t outputs) {
  switch (row.id) {
    case Builtin::tid:
      return call({fmt::format("builtin_tid{}d", outputs), "", false}, {},
                  std::vector<ValueType>(outputs, value_of(int_type)));
    case Builtin::block_dim:
      return {call({"builtin_block_dim", "", false}, {}, value_of(int_type))};
    case Builtin::norm_l1:
    case Builtin::sync_threads:
      fail(e.place, fmt::format("wp.{} has no Warp form", row.name));
    case Builtin::identity:
    case Builtin::quat_identity:
      return {identity(row.id, e)};
    default:
      break;
  }
  std::vector<Variable*> given = arguments(e, parameter_names(row.signature));
  if (row.id == Builtin::len && !given[0]->type.is_array()) {
    return {add(integer(given[0]->type.type.rows))};
  }
  if (row.id == Builtin::matrix_from_rows || row.id == Builtin::matrix_from_cols) {
    const Type type = given[0]->type.type;
    Callee callee = library(std::string(row.name));
    callee.forward += fmt::format("<{}>", scalar_text(type.scalar));
    return {call(callee, given, value_of(Type::matrix(type.rows, type.scalar)))};
  }
  if (row.id == Builtin::expect_near && given.size() == 2)
    given.push_back(unnumbered(value_of(float_type), real(1e-6)));
  return {apply(row.id, given)};
}

Variable* Lowering::identity(Builtin builtin, const syntax::Expr& e) {
  const bool quaternion = builtin == Builtin::quat_identity;
  ValueType type = value_of(Type::quaternion());
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const bool size = e.keywords[i - 1] == "n" || (e.keywords[i - 1].empty() && i == 1 && !quaternion);
    if (size) {
      type.type = Type::matrix(static_cast<int>(known(argument(e.args[i]), e.args[i])), type.type.scalar);
    } else {
      type.type.scalar = names_.annotation(e.args[i]).scalar;
      type.python_float = quaternion && e.args[i].kind == Kind::name;
    }
  }
  const std::string text =
      fmt::format("wp::{}<{}{}>", info(builtin).name, quaternion ? "" : fmt::format("{}, ", type.type.rows),
                  scalar_text(type.type.scalar));
  return call({text, "", false}, {}, type);
}

std::vector<Variable*> Lowering::function(const Function& callee, const syntax::Expr& e) {
  std::vector<std::string> parameters;
  for (int i = 0; i < callee.parameters; ++i)
    parameters.push_back(callee.variables[static_cast<std::size_t>(i)].name);
  if ((callee.gradient >= 0 || callee.replay >= 0) && !out_.no_backward)
    out_.no_backward.emplace(&source_, e.place,
                             "a function with a gradient of its own has no backward Warp form: use "
                             "enable_backward=False");
  return function(callee, arguments(e, parameters));
}

std::vector<Variable*> Lowering::function(const Function& callee, const std::vector<Variable*>& arguments) {
  out_.calls.push_back(callee.name);
  std::vector<ValueType> results;
  for (const Type type : callee.results) results.push_back(value_of(type));
  std::vector<Variable*> made = call({callee.name + "_0", "adj_" + callee.name + "_0"}, arguments, results);
  if (made.empty()) made.push_back(nullptr);
  return made;
}

}  // namespace ferrite::irsynth::warp
