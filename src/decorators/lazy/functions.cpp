#include "decorators/lazy/functions.hpp"

#include <limits>

namespace ferrite::lazy {

using kernel::Builtin;
using kernel::Expr;
using kernel::ScalarType;
using op::BinaryFn;
using op::ReduceFn;
using op::UnaryFn;

Expr Statements::let(Expr value, std::string_view name) {
  if (value.kind == kernel::ExprKind::variable || value.kind == kernel::ExprKind::literal) return value;
  const int index = kernel::add_variable(
      function_, std::string(name) + std::to_string(function_.variables.size()), value.type);
  Expr target = kernel::variable(function_, index);
  assign(target, std::move(value));
  return target;
}

void Statements::assign(Expr target, Expr value) {
  kernel::Stmt s;
  s.targets.push_back(std::move(target));
  s.values.push_back(std::move(value));
  body_.push_back(std::move(s));
}

namespace {

/// A value in a formula.
struct Term {
  Expr e;
  Term like(double value) const {
    const ScalarType type = e.type.scalar;
    return {kernel::is_float(type) ? kernel::literal(type, value)
                                   : kernel::literal(type, static_cast<std::int64_t>(value))};
  }
};
template <class... T>
Term call(Builtin builtin, const T&... args) {
  return {kernel::apply(builtin, {args.e...})};
}
Term where(const Term& condition, const Term& a, const Term& b) {
  return call(Builtin::where, condition, a, b);
}

#define FERRITE_TERM(op, builtin)                                                         \
  Term operator op(const Term& a, const Term& b) { return call(Builtin::builtin, a, b); } \
  [[maybe_unused]] Term operator op(const Term& a, double b) { return a op a.like(b); }   \
  [[maybe_unused]] Term operator op(double a, const Term& b) { return b.like(a) op b; }
FERRITE_TERM(+, add)
FERRITE_TERM(-, sub)
FERRITE_TERM(*, mul)
FERRITE_TERM(/, div)
FERRITE_TERM(<, lt)
FERRITE_TERM(<=, le)
FERRITE_TERM(>, gt)
FERRITE_TERM(>=, ge)
FERRITE_TERM(==, eq)
FERRITE_TERM(!=, ne)
#undef FERRITE_TERM
Term operator-(const Term& x) { return call(Builtin::neg, x); }
Term operator|(const Term& a, const Term& b) { return where(a, {kernel::literal(true)}, b); }  // of bools
Term operator&(const Term& a, const Term& b) { return where(a, b, a); }

/// The kernel language as a Math of the formulas. Integers and floats take the same path: its integers wrap
/// around.
struct TermMath {
  static constexpr bool is_real = true;
  Statements& to;
  Term of_type;  // for the type of constants

  Term operator()(double value) const { return of_type.like(value); }
  Term let(const Term& x) const { return {to.let(x.e)}; }
  Term select(const Term& condition, const Term& a, const Term& b) const { return where(condition, a, b); }
  Term truth(const Term& condition) const { return condition; }
  Term within(const Term& x, double limit) const {
    const Term below = let(where(x > limit, (*this)(limit), x));
    return where(below < -limit, (*this)(-limit), below);
  }
  Term sign(const Term& x) const {
    return where(x > 0, (*this)(1), where(x < 0, (*this)(-1), where(x == x, (*this)(0), x)));
  }
  Term neg(const Term& x) const { return -x; }
  Term add(const Term& a, const Term& b) const { return a + b; }
  Term sub(const Term& a, const Term& b) const { return a - b; }
  Term mul(const Term& a, const Term& b) const { return a * b; }
#define FERRITE_TERM(fn, builtin) \
  Term fn(const auto&... x) const { return call(Builtin::builtin, x...); }
  FERRITE_TERM(abs, abs)
  FERRITE_TERM(sqrt, sqrt)
  FERRITE_TERM(exp, exp)
  FERRITE_TERM(log, log)
  FERRITE_TERM(sin, sin)
  FERRITE_TERM(cos, cos)
  FERRITE_TERM(tan, tan)
  FERRITE_TERM(tanh, tanh)
  FERRITE_TERM(erf, erf)
  FERRITE_TERM(erfc, erfc)
  FERRITE_TERM(pow, pow)
  FERRITE_TERM(fmod, mod)
  FERRITE_TERM(copysign, copysign)
  FERRITE_TERM(atan2, atan2)
#undef FERRITE_TERM
  Term rounded(Builtin fn, const Term& x) const {
    return kernel::is_float(x.e.type.scalar) ? call(fn, x) : x;
  }
  Term floor(const Term& x) const { return rounded(Builtin::floor, x); }
  Term ceil(const Term& x) const { return rounded(Builtin::ceil, x); }
  Term round(const Term& x) const { return rounded(Builtin::rint, x); }
  Term rsqrt(const Term& x) const { return 1 / sqrt(x); }
  /// Without cancellation (Kahan): rounding of u = exp(x) cancels in (u - 1) / log(u).
  Term expm1(const Term& x) const {
    const Term u = let(exp(x)), near = let((u - 1) * (x / log(u)));
    return where(u == 1, x, where(u <= 0, (*this)(-1), where(call(Builtin::isinf, u), u, near)));
  }
  /// The same method.
  Term log1p(const Term& given) const {
    const Term x = let(given), u = let(x + 1), near = let(log(u) * (x / (u - 1)));
    return where(u == 1, x, where(u <= 0, log(u), where(call(Builtin::isinf, u), u, near)));
  }
};

}  // namespace

Expr unary_expression(Statements& to, UnaryFn fn, Expr given, const Expr& alpha) {
  const Term x{to.let(std::move(given))};
  if (fn == UnaryFn::logical_not) return call(Builtin::not_, x).e;  // x is bool
  return formulas::unary(TermMath{to, x}, fn, x, Term{alpha}).e;
}

Expr backward_expression(Statements& to, UnaryFn fn, Expr given, Expr gradient, const Expr& alpha) {
  const Term s{to.let(std::move(given))}, dy{to.let(std::move(gradient))};
  return formulas::backward(TermMath{to, s}, fn, s, dy, Term{alpha}).e;
}

bool has_expression(BinaryFn fn, DType compute) {
  return is_floating(compute) || (fn != BinaryFn::pow && fn != BinaryFn::remainder);
}

Expr binary_expression(Statements& to, BinaryFn fn, Expr left, Expr right, op::ScalarSide side) {
  const Term a{to.let(std::move(left))}, b{to.let(std::move(right))};
  // Operands of logic are bool. Extrema take one comparison if one operand is known not to be NaN.
  const bool scalar_left = side == op::ScalarSide::left, scalar_right = side == op::ScalarSide::right;
  if (fn == BinaryFn::logical_and) return (a & b).e;
  if (fn == BinaryFn::logical_or) return (a | b).e;
  if (fn == BinaryFn::logical_xor) return (a != b).e;
  if (fn == BinaryFn::maximum && scalar_right) return where(a <= b, b, a).e;
  if (fn == BinaryFn::maximum && scalar_left) return where(a > b, a, b).e;
  if (fn == BinaryFn::minimum && scalar_right) return where(a >= b, b, a).e;
  if (fn == BinaryFn::minimum && scalar_left) return where(a < b, a, b).e;
  return formulas::binary(TermMath{to, a}, fn, a, b).e;
}

// clang-format off

Expr reduce_identity(ReduceFn fn, ScalarType type) {
  const bool real = kernel::is_float(type);
  const auto extreme = [&](bool high) {
    using Real = std::numeric_limits<double>;
    using Integer = std::numeric_limits<std::int64_t>;
    return real ? kernel::literal(type, high ? Real::infinity() : -Real::infinity())
                : kernel::literal(type, high ? Integer::max() : Integer::min());
  };
  switch (fn) {
    case ReduceFn::sum: return real ? kernel::literal(type, 0.0) : kernel::literal(type, std::int64_t{0});
    case ReduceFn::prod: return real ? kernel::literal(type, 1.0) : kernel::literal(type, std::int64_t{1});
    case ReduceFn::max: return extreme(false);
    case ReduceFn::min: return extreme(true);
    case ReduceFn::any: return kernel::literal(false);
    case ReduceFn::all: return kernel::literal(true);
  }
  return kernel::literal(false);
}

Expr reduce_step(Statements& to, ReduceFn fn, Expr sum, Expr value) {
  const Term total{std::move(sum)}, x{to.let(std::move(value))};
  switch (fn) {
    case ReduceFn::sum: return (total + x).e;
    case ReduceFn::prod: return (total * x).e;
    case ReduceFn::max: return where(x != x, x, where(x > total, x, total)).e;
    case ReduceFn::min: return where(x != x, x, where(x < total, x, total)).e;
    case ReduceFn::any: return (total | x).e;
    case ReduceFn::all: return (total & x).e;
  }
  return x.e;
}

// clang-format on

}  // namespace ferrite::lazy
