// Constants: values that Python computes before a kernel runs.
#include <limits>
#include <numbers>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

using Kind = syntax::ExprKind;

std::optional<ModuleChecker::Constant> ModuleChecker::named_constant(const syntax::Expr& e, int depth) const {
  if (e.kind == Kind::name) {
    std::optional<Constant> found;
    with_constant(e.text, [&](const syntax::Expr& value) {
      if (const auto known = known_.find(&value); known != known_.end()) {
        found = known->second;
        return;
      }
      known_[&value] = std::nullopt;  // what needs itself has no value
      try {
        found = known_[&value] = constant(value, depth + 1);
      } catch (...) {
        known_.erase(&value);
        throw;
      }
    });
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
    if (name == e.text) return Constant::of(value);
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

/// mode == "fast", N > 16, 0 < N <= 16
std::optional<ModuleChecker::Constant> ModuleChecker::compared_constant(const syntax::Expr& e,
                                                                        int depth) const {
  for (std::size_t i = 0; i < e.comparisons.size(); ++i) {
    const Builtin how = e.comparisons[i];
    bool holds = false;
    const auto a = constant_text(e.args[i], depth), b = constant_text(e.args[i + 1], depth);
    if (a && b) {
      const int order = a->compare(*b);
      holds = python_compare(how, Constant::of(std::int64_t{order}), Constant::of(std::int64_t{0}));
    } else {
      const auto x = constant(e.args[i], depth + 1);
      const auto y = x ? constant(e.args[i + 1], depth + 1) : std::nullopt;
      if (!y) return std::nullopt;
      holds = python_compare(how, *x, *y);
    }
    if (!holds) return Constant::of(false);
  }
  return Constant::of(true);
}

namespace {

/// wp.sqrt(x), which Python computes in float.
std::optional<PythonNumber> warp_math(std::string_view function, std::span<const PythonNumber> args) {
  if (args.size() != 1 || !args[0].is_real()) return std::nullopt;
  const auto rounded = [](PythonNumber x) {
    return PythonNumber::of(static_cast<double>(static_cast<float>(x.real)));
  };
  const PythonNumber x = rounded(args[0]);
  const auto y = python_math(function, {&x, 1}, true);
  return y ? std::optional(rounded(*y)) : std::nullopt;
}

}  // namespace

/// wp.constant(x), wp.static(x), math.sqrt(x), wp.sqrt(x), max(x, y)
std::optional<ModuleChecker::Constant> ModuleChecker::called_constant(const syntax::Expr& e,
                                                                      int depth) const {
  const syntax::Expr& callee = e.args[0];
  const bool member = callee.kind == Kind::attribute && callee.args[0].kind == Kind::name;
  const auto module = member ? file_.modules.find(callee.args[0].text) : file_.modules.end();
  if (member ? module == file_.modules.end() : callee.kind != Kind::name) return std::nullopt;
  const bool warp = member && module->second == "warp";
  const bool same = warp && e.args.size() == 2 && (callee.text == "constant" || callee.text == "static");
  if (!member && find_definition(callee.text)) return std::nullopt;
  std::vector<Constant> args;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const auto x = constant(e.args[i], depth + 1);
    if (!x || (!same && !e.keywords[i - 1].empty())) return std::nullopt;
    args.push_back(*x);
  }
  if (same) return args[0];
  if (warp) return warp_math(callee.text, args);
  return member ? python_math(callee.text, args, module->second == "numpy") : python_call(callee.text, args);
}

std::optional<ModuleChecker::Constant> ModuleChecker::operated_constant(const syntax::Expr& e,
                                                                        int depth) const {
  const auto a = constant(e.args[0], depth + 1);
  if (!a) return std::nullopt;
  switch (e.kind) {
    case Kind::unary:
      return python_unary(e.builtin, *a);
    case Kind::logical_and:
    case Kind::logical_or:  // one of the operands, in Python
      return a->is_true() == (e.kind == Kind::logical_or) ? a : constant(e.args[1], depth + 1);
    case Kind::conditional:
      return constant(e.args[a->is_true() ? 1 : 2], depth + 1);
    default: {
      const auto b = e.text == "@" ? std::nullopt : constant(e.args[1], depth + 1);
      return b ? std::optional(python_binary(e.builtin, *a, *b)) : std::nullopt;
    }
  }
}

std::optional<ModuleChecker::Constant> ModuleChecker::constant(const syntax::Expr& e, int depth) const {
  if (depth > deepest_constant) return std::nullopt;
  try {
    switch (e.kind) {
      case Kind::boolean:
        return Constant::of(e.integer != 0);
      case Kind::integer:
        if (e.integer > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
          return std::nullopt;
        return Constant::of(static_cast<std::int64_t>(e.integer));
      case Kind::real:
        return Constant::of(e.real);
      case Kind::name:
      case Kind::attribute:
        return named_constant(e, depth);
      case Kind::call:
        return called_constant(e, depth);
      case Kind::compare:
        return compared_constant(e, depth);
      case Kind::unary:
      case Kind::binary:
      case Kind::logical_and:
      case Kind::logical_or:
      case Kind::conditional:
        return operated_constant(e, depth);
      default:
        return std::nullopt;
    }
  } catch (const ValueError& error) {  // of Python's arithmetic, which knows no place
    fail(e.place, error.what());
  }
}

}  // namespace ferrite::kernel
