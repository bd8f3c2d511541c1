// Calls: casts, constructors, builtins and functions.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/builtins/library.hpp"
#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

namespace {

std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& p : parts) text += (text.empty() ? "" : ", ") + p;
  return text;
}

bool is_in_range(std::int64_t value, ScalarType scalar) {
  const int bits = bits_of(scalar);
  if (is_unsigned(scalar)) return value >= 0 && (bits == 64 || value >> bits == 0);
  return value >> (bits - 1) == 0 || value >> (bits - 1) == -1;
}

}  // namespace

std::vector<std::string> parameter_names(std::string_view signature) {
  std::vector<std::string> names;
  std::string_view rest = signature.substr(signature.find('(') + 1);
  rest = rest.substr(0, rest.find(')'));
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    names.emplace_back(one.substr(0, one.find(':')));
    rest.remove_prefix(std::min(rest.size(), one.size() + 2));
  }
  return names;
}

Expr FunctionChecker::call(const syntax::Expr& e) {
  const syntax::Expr& callee = e.args[0];
  if (const auto name = module_.warp_name(callee)) {
    if (const auto type = type_from_name(*name))
      return type->is_scalar() ? cast_call(type->scalar, e) : construct_call(*type, e);
    const BuiltinInfo* row = find_builtin(*name);
    if (row != nullptr && row->id != Builtin::shape) return builtin_call(*row, e);
    if (is_library_function(*name)) return library_call(*name, e);
    if (*name == "static") return static_call(e);
    if (*name == "select")
      fail(callee.place, "wp.select is gone: write wp.where(cond, value_if_true, value_if_false)");
    if (*name == "zeros" || *name == "shared_array")
      fail(e.place, fmt::format("wp.{} makes a variable: assign it to a name", *name));
    fail(callee.place, fmt::format("'wp.{}' is not part of the kernel language", *name));
  }
  if (callee.kind != Kind::name)
    fail(callee.place, callee.kind == Kind::attribute
                           ? fmt::format("values have no methods: '.{}' cannot be called", callee.text)
                           : "only functions can be called");
  const std::string& name = callee.text;
  if (names_.contains(name)) fail(callee.place, fmt::format("'{}' is a variable, not a function", name));
  if (name == "float" || name == "int" || name == "bool") return cast_call(type_from_name(name)->scalar, e);
  if (const auto index = module_.find_struct(name))
    return construct_call(Type::structure_of(static_cast<std::size_t>(*index)), e);
  if (const auto index = module_.find_function(name, callee.place)) return function_call(*index, e);
  for (const std::string_view python : {"abs", "min", "max", "len", "round", "pow"})
    if (name == python) return builtin_call(*find_builtin(name), e);
  if (name == "range") fail(callee.place, "range stands only in `for i in range(...)`");
  if (const auto type = module_.simple_type(callee))  // vec = wp.vec3
    return type->is_scalar() ? cast_call(type->scalar, e) : construct_call(*type, e);
  module_.check_bound(callee);
  fail(callee.place, fmt::format("unknown function '{}'{}", name,
                                 find_builtin(name) != nullptr ? fmt::format(": write wp.{}", name)
                                                               : ": it has no @wp.func in this file"));
}

std::vector<const syntax::Expr*> FunctionChecker::optional_arguments(
    const syntax::Expr& e, const std::vector<std::string>& parameters) {
  std::vector<const syntax::Expr*> slots(parameters.size(), nullptr);
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const std::string& keyword = e.keywords[i - 1];
    std::size_t at = keyword.empty() ? i - 1 : 0;
    while (!keyword.empty() && at < parameters.size() && parameters[at] != keyword) ++at;
    if (keyword.empty() && at >= slots.size())
      slots.resize(at + 1, nullptr);  // the caller reports what is wrong
    if (at >= slots.size())
      fail(e.args[i].place,
           fmt::format("there is no parameter '{}': they are {}", keyword, listed(parameters)));
    if (slots[at] != nullptr) fail(e.args[i].place, fmt::format("parameter '{}' is given twice", keyword));
    slots[at] = &e.args[i];
  }
  return slots;
}

std::vector<const syntax::Expr*> FunctionChecker::arguments(const syntax::Expr& e,
                                                            const std::vector<std::string>& parameters) {
  auto list = optional_arguments(e, parameters);
  while (!list.empty() && list.back() == nullptr) list.pop_back();
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] == nullptr) fail(e.place, fmt::format("parameter '{}' is missing", parameters[i]));
  return list;
}

Expr FunctionChecker::fitted(Expr v, Type wanted) const {
  if (v.kind != ExprKind::literal || v.type == wanted || v.type.is_bool() || !wanted.is_scalar()) return v;
  if (wanted.is_float() || (wanted.is_int() && v.type.is_int())) return cast(wanted.scalar, std::move(v));
  return v;
}

/// A number or constant in a place of a scalar type has that type from the start: it is never rounded to
/// float first. Nothing for anything else, and for values that the type cannot take without a cast.
std::optional<Expr> FunctionChecker::written_number(const syntax::Expr& e, ScalarType scalar) {
  const bool negative = e.kind == Kind::unary && e.builtin == Builtin::neg;
  const syntax::Expr& number = negative ? e.args[0] : e;
  if (number.kind == Kind::integer && is_integer(scalar)) {  // up to 2^64 - 1, which Constant does not hold
    const int bits = bits_of(scalar);
    const std::uint64_t most = is_unsigned(scalar) ? ~std::uint64_t{0} >> (64 - bits)
                                                   : (std::uint64_t{1} << (bits - 1)) - (negative ? 0 : 1);
    const bool lost = negative && is_unsigned(scalar) && number.integer > 0;
    if (number.integer > most || lost)
      fail(number.place,
           fmt::format("{}{} does not fit {}", negative ? "-" : "", number.integer, show(Type::of(scalar))));
    return literal(scalar, static_cast<std::int64_t>(negative ? 0 - number.integer : number.integer));
  }
  const bool written = constants_only_ || number.kind == Kind::real || number.kind == Kind::integer ||
                       number.kind == Kind::attribute || number.kind == Kind::name ||
                       (number.kind == Kind::call && module_.warp_name(number.args[0]) == "static");
  if (!written) return std::nullopt;  // 0.1 * 3.0 is arithmetic of the kernel, in float
  if (number.kind == Kind::call) check_static(number);
  const auto c = constant(e);
  using C = ModuleChecker::Constant;
  if (c && c->kind == C::Kind::real && is_float(scalar)) return literal(scalar, c->real);
  if (c && c->kind == C::Kind::integer && is_float(scalar)) return literal(scalar, c->real);
  if (!c || c->kind != C::Kind::integer || !is_integer(scalar)) return std::nullopt;
  if (!is_in_range(c->integer, scalar))
    fail(e.place, fmt::format("{} does not fit {}", c->integer, show(Type::of(scalar))));
  return literal(scalar, c->integer);
}

Expr FunctionChecker::cast_call(ScalarType scalar, const syntax::Expr& e) {
  const auto given = arguments(e, {"x"});
  if (given.empty()) return literal(scalar, std::int64_t{0});
  if (given.size() != 1) fail(e.place, fmt::format("{} takes one value", show(Type::of(scalar))));
  const syntax::Expr* inner = given[0];
  if (auto number = written_number(*inner, scalar)) return std::move(*number);
  Expr v = value(*inner);
  if (!v.type.is_scalar())
    fail(inner->place,
         fmt::format("{} of {}: only scalars are cast this way", show(Type::of(scalar)), show(v.type)));
  return cast(scalar, std::move(v));
}

Expr FunctionChecker::construct_call(Type type, const syntax::Expr& e) {
  std::vector<std::string> names;
  std::vector<Type> wanted;
  if (type.is_struct()) {
    for (const Variable& f : module_.module().structs[type.structure].fields) {
      names.push_back(f.name);
      wanted.push_back(f.type);
    }
  } else {
    wanted.assign(static_cast<std::size_t>(type.components()), Type::of(type.scalar));
    names.assign(wanted.size(), "");
    for (std::size_t i = 0; i < names.size() && !type.is_matrix(); ++i) names[i] = std::string(1, "xyzw"[i]);
  }
  std::vector<Expr> args;
  for (const syntax::Expr* a : arguments(e, names)) {
    const std::size_t i = args.size();
    const bool exact = i < wanted.size() && wanted[i].is_scalar() && !is_unsigned(wanted[i].scalar);
    auto number = exact ? written_number(*a, wanted[i].scalar) : std::optional<Expr>();
    if (number) number->place = a->place;
    args.push_back(number ? std::move(*number) : value(*a));
  }
  if (args.empty()) return construct(type, {});
  if (!type.is_struct() && args.size() == 1) {
    const Type given = args[0].type;
    if (given == type) return std::move(args[0]);
    if (given.is_composite() && given.with_scalar(type.scalar) == type)
      return construct(type, std::move(args));
    if (given.is_scalar()) wanted.resize(type.is_quaternion() ? 4 : 1);
  }
  if (args.size() != wanted.size())
    fail(e.place, fmt::format("{} has {} {}, but {} are given", show(type), wanted.size(),
                              type.is_struct() ? "fields" : "components", args.size()));
  for (std::size_t i = 0; i < args.size(); ++i) {
    args[i] = fitted(std::move(args[i]), wanted[i]);
    if (args[i].type != wanted[i])
      fail(e.args[i + 1].place,
           fmt::format("{} {} of {} is {}, not {}{}", type.is_struct() ? "field" : "component", i + 1,
                       show(type), show(wanted[i]), show(args[i].type),
                       wanted[i].is_scalar() ? fmt::format(": write {}(...)", show(wanted[i])) : ""));
  }
  return construct(type, std::move(args));
}

/// wp.identity(n=3, dtype=float) and wp.quat_identity(dtype=float): the type is in the arguments.
Expr FunctionChecker::named_type_call(Builtin builtin, const syntax::Expr& e) {
  const bool quaternion = builtin == Builtin::quat_identity;
  const auto given = arguments(e, parameter_names(info(builtin).signature));
  const std::size_t at = quaternion ? 0 : 1;
  Type scalar = float_type;
  if (given.size() > at) scalar = module_.annotation(*given[at]);
  if (!scalar.is_float() || given.size() > at + 1) fail(e.place, "dtype is a float type");
  Type type = Type::quaternion(scalar.scalar);
  if (!quaternion) {
    const auto n = given.empty() ? std::nullopt : constant(*given[0]);
    if (!n || n->kind != ModuleChecker::Constant::Kind::integer || n->integer < 2 || n->integer > 4)
      fail(e.place, "wp.identity needs n, a constant from 2 to 4");
    type = Type::matrix(static_cast<int>(n->integer), scalar.scalar);
  }
  Expr r;
  r.kind = ExprKind::apply;
  r.builtin = builtin;
  r.type = type;
  return r;
}

Expr FunctionChecker::builtin_call(const BuiltinInfo& row, const syntax::Expr& e) {
  if (row.id == Builtin::identity || row.id == Builtin::quat_identity) return named_type_call(row.id, e);
  if (!kernel_ && (row.id == Builtin::tid || row.id == Builtin::block_dim || row.id == Builtin::sync_threads))
    fail(e.place, fmt::format("wp.{} is for kernels: pass what the function needs", row.name));
  const auto given = arguments(e, parameter_names(row.signature));
  std::vector<Expr> args;
  for (const syntax::Expr* a : given) args.push_back(value(*a));
  if (row.id == Builtin::where && !args.empty()) args[0] = truth(std::move(args[0]), given[0]->place);
  std::vector<Type> types;
  std::vector<std::string> shown;
  for (const Expr& a : args) {
    types.push_back(a.type);
    shown.push_back(show(a.type));
  }
  if (!row.result(types)) {
    bool mixed = false;
    for (std::size_t i = 1; i < types.size(); ++i)
      mixed |= types[i].is_scalar() && types[0].is_scalar() && types[i] != types[0];
    fail(e.place, fmt::format("wp.{}({}): needs {}{}", row.name, listed(shown), row.signature,
                              mixed ? "; types never mix silently, cast with float(...) or int(...)" : ""));
  }
  if (row.effect == Effect::updates_first && args[0].kind != ExprKind::variable)
    fail(given[0]->place, fmt::format("wp.{} changes its state: pass a variable", row.name));
  return apply(row.id, std::move(args));
}

/// wp.noise(state, x): the type of x decides which function it is.
Expr FunctionChecker::library_call(std::string_view name, const syntax::Expr& e) {
  if (e.args.size() != 3) fail(e.place, fmt::format("wp.{} takes a state and a place", name));
  const Type x = value(e.args[2]).type;
  const auto function = library_function(name, x);
  if (!function)
    fail(e.args[2].place, fmt::format("wp.{} of {}: it takes float, vec2 and vec3", name, show(x)));
  return function_call(*module_.find_function(*function, e.place), e);
}

Expr FunctionChecker::function_call(int index, const syntax::Expr& e) {
  // A copy: checking the arguments may add functions to the module.
  const Function& callee = module_.module().functions[static_cast<std::size_t>(index)];
  const std::vector<Variable> parameters(callee.variables.begin(),
                                         callee.variables.begin() + callee.parameters);
  const std::string function = callee.name;
  check_runs_in_python(index, e.place);
  Expr r;
  r.kind = ExprKind::call;
  r.index = index;
  r.type = callee.results.size() == 1 ? callee.results[0]
           : callee.results.empty()   ? Type::none()
                                      : Type::tuple(callee.results.size());
  std::vector<std::string> names;
  for (const Variable& p : parameters) names.push_back(p.name);
  const auto given = arguments(e, names);
  if (given.size() != names.size())
    fail(e.place, fmt::format("'{}' takes {} arguments ({}), but {} are given", function, names.size(),
                              listed(names), given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    Expr a = value(*given[i]);
    const Type wanted = parameters[i].type;
    const bool scalars = wanted.is_scalar() && a.type.is_scalar();
    if (a.type != wanted)
      fail(given[i]->place,
           fmt::format("parameter '{}' of '{}' is {}, not {}{}", names[i], function, show(wanted),
                       show(a.type), scalars ? fmt::format(": write {}(...)", show(wanted)) : ""));
    r.args.push_back(std::move(a));
  }
  return r;
}

}  // namespace ferrite::kernel
