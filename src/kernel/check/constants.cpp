// Constants: values that Python computes before a kernel runs.
#include <cmath>
#include <limits>
#include <numbers>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

using Kind = syntax::ExprKind;

std::optional<ModuleChecker::Constant> ModuleChecker::named_constant(const syntax::Expr& e, int depth) const {
  if (e.kind == Kind::name) {
    std::optional<Constant> found;
    with_constant(e.text, [&](const syntax::Expr& value) { found = constant(value, depth + 1); });
    return found;
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

/// The string that an expression is, if it is one.
std::optional<std::string> ModuleChecker::constant_text(const syntax::Expr& e, int depth) const {
  std::optional<std::string> text;
  if (e.kind == Kind::string) text = e.text;
  if (e.kind == Kind::name && depth <= 50)
    with_constant(e.text, [&](const syntax::Expr& value) { text = constant_text(value, depth + 1); });
  return text;
}

/// mode == "fast", N > 16
std::optional<ModuleChecker::Constant> ModuleChecker::compared_constant(const syntax::Expr& e,
                                                                        int depth) const {
  if (e.args.size() != 2) return std::nullopt;
  const auto decided = [&](auto a, auto b) -> std::optional<Constant> {
    const Builtin how = e.comparisons[0];
    const bool yes = how == Builtin::lt   ? a < b
                     : how == Builtin::le ? a <= b
                     : how == Builtin::gt ? a > b
                     : how == Builtin::ge ? a >= b
                     : how == Builtin::eq ? a == b
                                          : a != b;
    return Constant{Constant::Kind::boolean, yes, static_cast<double>(yes)};
  };
  const auto a = constant_text(e.args[0], depth), b = constant_text(e.args[1], depth);
  if (a && b) return decided(*a, *b);
  const auto x = constant(e.args[0], depth + 1), y = constant(e.args[1], depth + 1);
  if (!x || !y) return std::nullopt;
  const bool real = x->kind == Constant::Kind::real || y->kind == Constant::Kind::real;
  return real ? decided(x->real, y->real) : decided(x->integer, y->integer);
}

/// wp.constant(x), wp.static(x), math.sqrt(x)
std::optional<ModuleChecker::Constant> ModuleChecker::called_constant(const syntax::Expr& e,
                                                                      int depth) const {
  if (e.args.size() != 2) return std::nullopt;
  const auto x = constant(e.args[1], depth + 1);
  const auto called = warp_name(e.args[0]);
  if (!x || called == "constant" || called == "static") return x;
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
  if (depth > 50) return std::nullopt;  // also for constants that depend on themselves
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
    case Kind::compare:
      return compared_constant(e, depth);
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
