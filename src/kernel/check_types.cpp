// Annotations and the constants of the file.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "kernel/checker.hpp"

namespace ferrite::kernel {

using Kind = syntax::ExprKind;

std::optional<std::string_view> ModuleChecker::warp_name(const syntax::Expr& e) const {
  if (e.kind != Kind::attribute || e.args[0].kind != Kind::name) return std::nullopt;
  const auto module = file_.modules.find(e.args[0].text);
  if (module == file_.modules.end() || module->second != "warp") return std::nullopt;
  return e.text;
}

/// Scalars, composites and structs.
std::optional<Type> ModuleChecker::simple_type(const syntax::Expr& e) const {
  if (const auto name = warp_name(e)) return type_from_name(*name);
  if (e.kind != Kind::name) return std::nullopt;
  if (e.text == "float" || e.text == "int" || e.text == "bool") return type_from_name(e.text);
  if (const auto index = find_struct(e.text)) return Type::structure_of(static_cast<std::size_t>(*index));
  const auto alias = file_.constants.find(e.text);  // vec = wp.vec3
  return alias != file_.constants.end() && warp_name(alias->second)
             ? type_from_name(*warp_name(alias->second))
             : std::nullopt;
}

Type ModuleChecker::annotation(const syntax::Expr& e) const {
  if (const auto simple = simple_type(e)) return *simple;
  // wp.array[float], wp.array2d[float], wp.array(dtype=float, ndim=2), wp.array2d(dtype=float)
  const bool applied = e.kind == Kind::subscript || e.kind == Kind::call;
  const syntax::Expr& head = applied ? e.args[0] : e;
  const auto name = warp_name(head);
  if (!applied || !name || !name->starts_with("array")) {
    if (name && name->starts_with("array"))
      fail(e.place, fmt::format("the array has no element type: write wp.{}[float]", *name));
    fail(e.place, e.kind == Kind::name ? fmt::format("unknown type '{}'", e.text)
                                       : "this is not a type of the kernel language");
  }
  int dims = 1;
  if (name->size() == 7 && (*name)[5] >= '1' && (*name)[5] <= '4' && (*name)[6] == 'd')
    dims = (*name)[5] - '0';
  else if (*name != "array")
    fail(head.place, fmt::format("wp.{} is not a type of the kernel language", *name));
  const syntax::Expr* dtype = nullptr;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const std::string_view keyword = e.kind == Kind::call ? std::string_view(e.keywords[i - 1]) : "";
    if (keyword == "ndim" && e.args[i].kind == Kind::integer && e.args[i].integer >= 1 &&
        e.args[i].integer <= 4)
      dims = static_cast<int>(e.args[i].integer);
    else if ((keyword.empty() || keyword == "dtype") && dtype == nullptr)
      dtype = &e.args[i];
    else
      fail(e.args[i].place, "an array has dtype and ndim, which is 1 to 4");
  }
  if (dtype == nullptr) fail(e.place, "the array has no element type: write dtype=float");
  const Type element = annotation(*dtype);
  if (element.is_array()) fail(dtype->place, "arrays of arrays are not supported: use an array of more axes");
  if (element.is_struct()) {
    const Struct& s = module_.structs[element.structure];
    if (s.fields.empty()) fail(dtype->place, fmt::format("an array of '{}', which has no fields", s.name));
    for (const Variable& f : s.fields)
      if (f.type.is_array())
        fail(dtype->place,
             fmt::format("arrays of structs that hold arrays are not supported: field '{}'", f.name));
  }
  return element.array(dims);
}

std::optional<ModuleChecker::Constant> ModuleChecker::named_constant(const syntax::Expr& e, int depth) const {
  if (e.kind == Kind::name) {
    const auto found = file_.constants.find(e.text);
    return found == file_.constants.end() ? std::nullopt : constant(found->second, depth + 1);
  }
  if (e.args[0].kind != Kind::name || !file_.modules.contains(e.args[0].text)) return std::nullopt;
  struct Named {
    std::string_view name;
    double value;
  };
  using namespace std::numbers;
  static constexpr Named named[] = {{"pi", pi},
                                    {"PI", pi},
                                    {"tau", 2 * pi},
                                    {"TAU", 2 * pi},
                                    {"e", std::numbers::e},
                                    {"E", std::numbers::e},
                                    {"half_pi", pi / 2},
                                    {"HALF_PI", pi / 2},
                                    {"inf", std::numeric_limits<double>::infinity()},
                                    {"INF", std::numeric_limits<double>::infinity()},
                                    {"nan", std::numeric_limits<double>::quiet_NaN()},
                                    {"NAN", std::numeric_limits<double>::quiet_NaN()},
                                    {"ln2", ln2},
                                    {"LN2", ln2},
                                    {"ln10", ln10},
                                    {"LN10", ln10},
                                    {"log2e", log2e},
                                    {"LOG2E", log2e},
                                    {"log10e", log10e},
                                    {"LOG10E", log10e},
                                    {"phi", phi},
                                    {"PHI", phi}};
  for (const auto& [name, value] : named)
    if (name == e.text) return Constant{Constant::Kind::real, 0, value};
  return std::nullopt;
}

/// wp.constant(x), math.sqrt(x)
std::optional<ModuleChecker::Constant> ModuleChecker::called_constant(const syntax::Expr& e,
                                                                      int depth) const {
  if (e.args.size() != 2) return std::nullopt;
  const auto x = constant(e.args[1], depth + 1);
  if (!x || warp_name(e.args[0]) == "constant") return x;
  const syntax::Expr& callee = e.args[0];
  const bool member = callee.kind == Kind::attribute && callee.args[0].kind == Kind::name;
  const auto module = member ? file_.modules.find(callee.args[0].text) : file_.modules.end();
  if (module == file_.modules.end() || module->second == "warp") return std::nullopt;
  struct Named {
    std::string_view name;
    double (*function)(double);
  };
  static constexpr Named functions[] = {{"sqrt", std::sqrt}, {"exp", std::exp}, {"log", std::log},
                                        {"sin", std::sin},   {"cos", std::cos}, {"tan", std::tan}};
  for (const auto& [name, function] : functions)
    if (name == callee.text) return Constant{Constant::Kind::real, 0, function(x->real)};
  return std::nullopt;
}

std::optional<ModuleChecker::Constant> ModuleChecker::constant(const syntax::Expr& e, int depth) const {
  using C = Constant;
  if (depth > 50) return std::nullopt;  // also of constants that need themselves
  switch (e.kind) {
    case Kind::boolean:
      return C{C::Kind::boolean, static_cast<std::int64_t>(e.integer), static_cast<double>(e.integer)};
    case Kind::integer:
      if (e.integer > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return std::nullopt;
      return C{C::Kind::integer, static_cast<std::int64_t>(e.integer), static_cast<double>(e.integer)};
    case Kind::real:
      return C{C::Kind::real, 0, e.real};
    case Kind::name:
    case Kind::attribute:
      return named_constant(e, depth);
    case Kind::call:
      return called_constant(e, depth);
    case Kind::unary: {
      const auto x = constant(e.args[0], depth + 1);
      if (!x || e.builtin != Builtin::neg || x->integer == std::numeric_limits<std::int64_t>::min())
        return std::nullopt;
      return C{x->kind == C::Kind::real ? C::Kind::real : C::Kind::integer, -x->integer, -x->real};
    }
    case Kind::binary: {
      const auto a = constant(e.args[0], depth + 1), b = constant(e.args[1], depth + 1);
      if (!a || !b) return std::nullopt;
      const bool real = a->kind == C::Kind::real || b->kind == C::Kind::real || e.builtin == Builtin::div;
      std::int64_t whole = 0;
      bool overflow = false;
      double x = 0;
      if (e.builtin == Builtin::add) {
        overflow = __builtin_add_overflow(a->integer, b->integer, &whole);
        x = a->real + b->real;
      } else if (e.builtin == Builtin::sub) {
        overflow = __builtin_sub_overflow(a->integer, b->integer, &whole);
        x = a->real - b->real;
      } else if (e.builtin == Builtin::mul && e.text == "*") {
        overflow = __builtin_mul_overflow(a->integer, b->integer, &whole);
        x = a->real * b->real;
      } else if (e.builtin == Builtin::div && b->real != 0) {
        x = a->real / b->real;
      } else if (e.builtin == Builtin::floordiv && b->integer > 0 && a->integer >= 0 && !real) {
        whole = a->integer / b->integer;
      } else if (e.builtin == Builtin::pow && real) {
        x = std::pow(a->real, b->real);
      } else {
        return std::nullopt;
      }
      if (real) return C{C::Kind::real, 0, x};
      return overflow ? std::nullopt : std::optional(C{C::Kind::integer, whole, static_cast<double>(whole)});
    }
    default:
      return std::nullopt;
  }
}

}  // namespace ferrite::kernel
