// Makers of expressions and questions about trees.
#include "ferrite/kernel/ir.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/builtins/call.hpp"

namespace ferrite::kernel {

const Function& Module::kernel(std::string_view name) const {
  if (name.empty() && kernels.size() == 1) return kernels[0];
  if (kernels.empty()) throw ValueError("[kernel] there is no kernel: mark a function with @wp.kernel");
  std::string list;
  std::string qualified(name);
  std::replace(qualified.begin(), qualified.end(), '.', '_');
  for (const Function& k : kernels) {
    if (!name.empty() && (k.name == name || k.name == qualified)) return k;
    list += (list.empty() ? "" : ", ") + k.name;
  }
  throw ValueError(name.empty() ? fmt::format("[kernel] {} kernels ({}): name one", kernels.size(), list)
                                : fmt::format("[kernel] '{}' is not among the kernels: {}", name, list));
}

std::vector<std::string> Module::struct_names() const {
  std::vector<std::string> names;
  for (const Struct& s : structs) names.push_back(s.name);
  return names;
}

Expr literal(ScalarType type, double value) {
  Expr e;
  e.type = Type::of(type);
  e.number = cast_number(ScalarType::f64, type, Precision::native, from_real(value));
  return e;
}
Expr literal(ScalarType type, std::int64_t value) {
  Expr e;
  e.type = Type::of(type);
  e.number = cast_number(ScalarType::i64, type, Precision::native, from_integer(value));
  return e;
}
Expr literal(bool value) { return literal(ScalarType::bool_, std::int64_t{value}); }

Expr variable(const Function& function, int index) {
  Expr e;
  e.kind = ExprKind::variable;
  e.type = function.variables[static_cast<std::size_t>(index)].type;
  e.index = index;
  return e;
}

namespace {

Expr make(ExprKind kind, Type type, std::vector<Expr> args) {
  Expr e;
  e.kind = kind;
  e.type = type;
  if (!args.empty()) e.place = args[0].place;
  e.args = std::move(args);
  return e;
}

std::vector<Expr> joined(Expr first, std::vector<Expr> rest) {
  rest.insert(rest.begin(), std::move(first));
  return rest;
}

}  // namespace

Expr apply(Builtin builtin, std::vector<Expr> args) {
  std::vector<Type> types;
  for (const Expr& a : args) types.push_back(a.type);
  const BuiltinInfo& row = info(builtin);
  const std::optional<Type> result = row.result(types);
  if (!result) {
    std::string given;
    for (const Type& t : types) given += (given.empty() ? "" : ", ") + to_string(t);
    throw ValueError(fmt::format("[apply] {}({}): needs {}", row.name, given, row.signature));
  }
  if (builtin == Builtin::neg && args[0].kind == ExprKind::literal) {  // -1 is a number, not an operation
    Expr number = std::move(args[0]);
    if (is_float(result->scalar))
      number.number.real = -number.number.real;
    else
      number.number.integer = wrap_to(result->scalar, 0 - static_cast<std::uint64_t>(number.number.integer));
    return number;
  }
  Expr e = make(ExprKind::apply, *result, std::move(args));
  e.builtin = builtin;
  return e;
}

Expr cast(ScalarType type, Expr value) {
  if (value.type == Type::of(type)) return value;
  if (value.kind == ExprKind::literal) {  // folded, so that float(0) and 0.0 are one thing
    value.number = cast_number(value.type.scalar, type, Precision::native, value.number);
    value.type = Type::of(type);
    return value;
  }
  std::vector<Expr> args;
  args.push_back(std::move(value));
  return make(ExprKind::cast, Type::of(type), std::move(args));
}

Expr construct(Type type, std::vector<Expr> args) { return make(ExprKind::construct, type, std::move(args)); }

Expr element(Expr array, std::vector<Expr> indices) {
  const Type type = array.type.element();
  return make(ExprKind::element, type, joined(std::move(array), std::move(indices)));
}

Expr component(Expr value, std::vector<Expr> indices) {
  const bool row = value.type.is_matrix() && indices.size() == 1;
  const Type type = row ? Type::vector(value.type.columns, value.type.scalar) : Type::of(value.type.scalar);
  return make(ExprKind::component, type, joined(std::move(value), std::move(indices)));
}

Expr field(const Module& module, Expr value, int index) {
  const Struct& s = module.structs[value.type.structure];
  std::vector<Expr> args;
  args.push_back(std::move(value));
  Expr e = make(ExprKind::field, s.fields[static_cast<std::size_t>(index)].type, std::move(args));
  e.index = index;
  return e;
}

bool holds_array(const Module& module, Type type) {
  if (type.is_array()) return true;
  if (!type.is_struct()) return false;
  const auto& fields = module.structs[type.structure].fields;
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Variable& f) { return holds_array(module, f.type); });
}

int add_variable(Function& function, std::string name, Type type) {
  function.variables.push_back({std::move(name), type});
  return static_cast<int>(function.variables.size()) - 1;
}

int tid_dims(const Function& kernel) {
  int dims = 0;
  for_each_expr(kernel.body, [&](const Expr& e) {
    if (e.kind == ExprKind::apply && e.builtin == Builtin::tid)
      dims = std::max(dims, e.type.is(Type::Kind::tuple) ? int{e.type.rows} : 1);
  });
  return dims;
}

bool has_barrier(const Stmt& s) {
  if (s.kind == StmtKind::evaluate && s.values[0].kind == ExprKind::apply)
    return info(s.values[0].builtin).effect == Effect::synchronises;
  return has_barrier(s.body) || has_barrier(s.orelse);
}
bool has_barrier(const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) { return has_barrier(s); });
}

namespace {

/// Looks at each function once: functions already seen have no effect, otherwise the search would have ended.
bool is_pure(const Module& module, const Expr& value, std::vector<bool>& seen) {
  bool pure = true;
  for_each_expr(value, [&](const Expr& e) {
    if (e.kind == ExprKind::apply) pure &= info(e.builtin).effect == Effect::none;
    if (e.kind != ExprKind::call || !pure || seen[static_cast<std::size_t>(e.index)]) return;
    seen[static_cast<std::size_t>(e.index)] = true;
    // A function without effects: it writes nothing but its own variables.
    const Function& f = module.functions[static_cast<std::size_t>(e.index)];
    for_each_stmt(f.body, [&](const Stmt& s) {
      pure &= s.kind != StmtKind::assert_;
      for (const Expr& target : s.targets)
        for_each_expr(target, [&](const Expr& t) { pure &= t.kind != ExprKind::element; });
      for (const Expr& v : s.values) pure = pure && is_pure(module, v, seen);
    });
  });
  return pure;
}

}  // namespace

bool is_pure(const Module& module, const Expr& value) {
  std::vector<bool> seen(module.functions.size());
  return is_pure(module, value, seen);
}

}  // namespace ferrite::kernel
