// What Python computes before a kernel runs: wp.static(x) and the values of constants, as values of a kernel.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

namespace {

/// Whether a function does more than pass values on, itself or in a function that it calls.
bool computes_numbers(const Module& module, int function) {
  bool found = false;
  for_each_expr(module.functions[static_cast<std::size_t>(function)].body, [&](const Expr& e) {
    const auto is_number = [](const Expr& arg) { return arg.type.is_scalar(); };
    const bool numbers = std::any_of(e.args.begin(), e.args.end(), is_number);
    const bool operates = e.kind == ExprKind::apply && !info(e.builtin).symbol.empty();
    found |= e.kind == ExprKind::cast || (operates && numbers);
    if (e.kind == ExprKind::call) found |= computes_numbers(module, e.index);
  });
  return found;
}

}  // namespace

/// Python runs the functions that it calls itself.
void FunctionChecker::check_runs_in_python(int function, Place place) const {
  if (constants_only_ && computes_numbers(module_.module(), function))
    fail(place, fmt::format("Python itself would run '{}', with its own arithmetic: leave out wp.static, or "
                            "write out the value",
                            module_.module().functions[static_cast<std::size_t>(function)].name));
}

Expr FunctionChecker::from_constant(const ModuleChecker::Constant& c, Place place) {
  using C = ModuleChecker::Constant;
  if (c.kind == C::Kind::real) return literal(ScalarType::f32, c.real);
  if (c.kind == C::Kind::boolean) return literal(c.integer != 0);
  if (c.integer > std::numeric_limits<std::int32_t>::max() ||
      c.integer < std::numeric_limits<std::int32_t>::min())
    fail(place, fmt::format("{} does not fit int: write wp.int64({})", c.integer, c.integer));
  return literal(ScalarType::i32, c.integer);
}

std::optional<ModuleChecker::Constant> FunctionChecker::constant(const syntax::Expr& e) {
  if (mentions_variable(e)) return std::nullopt;
  note_constants(e);
  return module_.constant(e);
}

/// Names that the kernel itself reads, which wp.static does not.
void FunctionChecker::note_constants(const syntax::Expr& e) {
  if (constants_only_ || e.kind == Kind::call) return;
  if (e.kind == Kind::name) constants_read_.insert(e.text);
  for (const syntax::Expr& arg : e.args) note_constants(arg);
}

bool FunctionChecker::mentions_variable(const syntax::Expr& e) const {
  if (constants_only_) return false;
  if (e.kind == Kind::name && names_.contains(e.text)) return true;
  return std::any_of(e.args.begin(), e.args.end(),
                     [&](const syntax::Expr& arg) { return mentions_variable(arg); });
}

/// The parts of an expression that Python computes and that are not numbers: vectors, strings, calls. Numbers
/// among their operands would follow the kernel's arithmetic, which is another.
Expr FunctionChecker::python_value(const syntax::Expr& e) {
  const auto refuse = [&] {
    fail(e.place,
         "Python computes this before the kernel runs; ferrite can where all numbers are Python's "
         "own: write out the value, or leave out wp.static");
  };
  if (e.kind == Kind::logical_and || e.kind == Kind::logical_or) refuse();
  if (e.kind == Kind::conditional) {
    const auto chosen = module_.constant(e.args[0]);
    if (!chosen) refuse();
    return value(e.args[chosen->is_true() ? 1 : 2]);
  }
  Expr v = e.kind == Kind::unary ? unary(e) : e.kind == Kind::binary ? binary(e) : compare(e);
  const auto is_number = [](const Expr& arg) { return arg.type.is_scalar(); };
  if (v.kind != ExprKind::literal && std::all_of(v.args.begin(), v.args.end(), is_number)) refuse();
  return v;
}

/// Python computes a wp.static(x) before the kernel runs, when no variable of the kernel has a value yet.
void FunctionChecker::check_static(const syntax::Expr& e) const {
  if (constants_only_) return;
  if (e.kind == Kind::name && names_.contains(e.text))
    fail(e.place, fmt::format("wp.static is computed before the kernel runs, and '{}' is a variable of it: "
                              "give the constant another name, or leave out wp.static",
                              e.text));
  for (const syntax::Expr& arg : e.args) check_static(arg);
}

/// wp.static(x): computed by Python before the kernel runs.
Expr FunctionChecker::static_call(const syntax::Expr& e) {
  if (e.args.size() != 2) fail(e.place, "wp.static takes one value");
  check_static(e);
  if (const auto known = module_.constant(e.args[1])) return from_constant(*known, e.place);
  module_.check_bound(e.args[1]);
  const bool outer = std::exchange(constants_only_, true);
  Expr v = value(e.args[1]);
  constants_only_ = outer;
  return v;
}

}  // namespace ferrite::kernel
