// The order of the passes, and folding.
#include "kernel/transform/simplify.hpp"

#include <cstdlib>

namespace ferrite::kernel {

namespace {

bool is_literal(const Expr& e) { return e.kind == ExprKind::literal; }
bool is_true(const Expr& e) { return e.type.is_bool() && is_literal(e) && e.number.integer != 0; }
bool is_false(const Expr& e) { return e.type.is_bool() && is_literal(e) && e.number.integer == 0; }
bool is_number(const Expr& e, int n) {
  if (!is_literal(e)) return n == 0 && e.kind == ExprKind::construct && e.args.empty();
  return is_float(e.type.scalar) ? e.number.real == n : e.number.integer == n;
}
bool is_small(const Expr& e) {
  return is_literal(e) && e.type == int_type && std::abs(e.number.integer) < 30000;
}

Expr fold_apply(Expr e) {
  const auto first = [&] { return Expr(std::move(e.args[0])); };
  const auto second = [&] { return Expr(std::move(e.args[1])); };
  const bool pair = e.args.size() == 2;
  if (pair && is_small(e.args[0]) && is_small(e.args[1])) {
    const std::int64_t a = e.args[0].number.integer, b = e.args[1].number.integer;
    if (e.builtin == Builtin::add) return literal(ScalarType::i32, a + b);
    if (e.builtin == Builtin::sub) return literal(ScalarType::i32, a - b);
    if (e.builtin == Builtin::mul) return literal(ScalarType::i32, a * b);
  }
  switch (e.builtin) {
    case Builtin::not_:
      if (is_literal(e.args[0])) return literal(is_false(e.args[0]));
      if (e.args[0].kind == ExprKind::apply && e.args[0].builtin == Builtin::not_)
        return Expr(e.args[0].args[0]);
      break;
    case Builtin::neg:
      if (e.args[0].kind == ExprKind::apply && e.args[0].builtin == Builtin::neg)
        return Expr(e.args[0].args[0]);
      break;
    case Builtin::add:
      if (is_number(e.args[0], 0)) return second();
      if (is_number(e.args[1], 0)) return first();
      break;
    case Builtin::sub:
      if (is_number(e.args[1], 0)) return first();
      break;
    case Builtin::mul:
      if (is_number(e.args[0], 1)) return second();
      if (is_number(e.args[1], 1)) return first();
      break;
    case Builtin::div:
    case Builtin::floordiv:
      if (is_number(e.args[1], 1) && (e.builtin == Builtin::div || e.type.is_int())) return first();
      break;
    default:
      break;
  }
  return e;
}

}  // namespace

Expr fold(Expr e) {
  for (Expr& a : e.args) a = fold(std::move(a));
  switch (e.kind) {
    case ExprKind::apply:
      return fold_apply(std::move(e));
    case ExprKind::cast:
      return cast(e.type.scalar, std::move(e.args[0]));
    case ExprKind::logical_and:
      if (is_true(e.args[0])) return Expr(std::move(e.args[1]));
      if (is_false(e.args[0]) || is_true(e.args[1])) return Expr(std::move(e.args[0]));
      return e;
    case ExprKind::logical_or:
      if (is_false(e.args[0])) return Expr(std::move(e.args[1]));
      if (is_true(e.args[0]) || is_false(e.args[1])) return Expr(std::move(e.args[0]));
      return e;
    case ExprKind::conditional:
      if (is_literal(e.args[0])) return Expr(std::move(e.args[is_true(e.args[0]) ? 1 : 2]));
      return e;
    default:
      return e;
  }
}

void shorten(const Module& module, Function& function) {
  for (int round = 0; round < 8; ++round) {
    const Function before = function;
    propagate_constants(function);
    remove_dead_code(module, function);
    rename_loop_variables(function);
    if (function == before) break;
  }
}

void simplify(const Module& module, Function& function) {
  shorten(module, function);
  remove_unused_variables(function);
}

}  // namespace ferrite::kernel
