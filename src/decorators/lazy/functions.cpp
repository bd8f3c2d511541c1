#include "decorators/lazy/functions.hpp"

#include <limits>

#include "ferrite/core/error.hpp"

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

// Short names, so that formulas look like formulas.
template <class... E>
Expr call(Builtin builtin, E... args) {
  std::vector<Expr> list;
  (list.push_back(std::move(args)), ...);
  return kernel::apply(builtin, std::move(list));
}
Expr operator+(Expr a, Expr b) { return call(Builtin::add, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return call(Builtin::sub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return call(Builtin::mul, std::move(a), std::move(b)); }
Expr operator/(Expr a, Expr b) { return call(Builtin::div, std::move(a), std::move(b)); }
Expr operator-(Expr a) { return call(Builtin::neg, std::move(a)); }
Expr operator<(Expr a, Expr b) { return call(Builtin::lt, std::move(a), std::move(b)); }
Expr operator>(Expr a, Expr b) { return call(Builtin::gt, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return call(Builtin::le, std::move(a), std::move(b)); }
Expr equal(Expr a, Expr b) { return call(Builtin::eq, std::move(a), std::move(b)); }
Expr unequal(Expr a, Expr b) { return call(Builtin::ne, std::move(a), std::move(b)); }
Expr where(Expr condition, Expr a, Expr b) {
  return call(Builtin::where, std::move(condition), std::move(a), std::move(b));
}
Expr number(const Expr& like, double value) {
  return kernel::is_float(like.type.scalar)
             ? kernel::literal(like.type.scalar, value)
             : kernel::literal(like.type.scalar, static_cast<std::int64_t>(value));
}
Expr abs(Expr x) { return call(Builtin::abs, std::move(x)); }
Expr exp(Expr x) { return call(Builtin::exp, std::move(x)); }
Expr log(Expr x) { return call(Builtin::log, std::move(x)); }
Expr isinf(Expr x) { return call(Builtin::isinf, std::move(x)); }

/// exp(x) - 1 without cancellation (Kahan): rounding of u = exp(x) cancels in (u - 1) / log(u).
Expr expm1(Statements& to, const Expr& x) {
  const Expr u = to.let(exp(x)), one = number(x, 1);
  const Expr near = to.let((u - one) * (x / log(u)));
  return where(equal(u, one), x, where(u <= number(x, 0), -one, where(isinf(u), u, near)));
}
/// log(1 + x) in the same way.
Expr log1p(Statements& to, const Expr& x) {
  const Expr one = number(x, 1), u = to.let(one + x);
  const Expr near = to.let(log(u) * (x / (u - one)));
  return where(equal(u, one), x, where(u <= number(x, 0), log(u), where(isinf(u), u, near)));
}
/// Without overflow of exp for large negative x.
Expr sigmoid(Statements& to, const Expr& x) {
  const Expr e = to.let(exp(-abs(x))), one = number(x, 1);
  return where(x < number(x, 0), e, one) / (one + e);
}

constexpr double sqrt_2_over_pi = 0.7978845608028654;
constexpr double gelu_cubic = 0.044715;
constexpr double sqrt_half = 0.7071067811865476;

Expr larger(Expr a, const Expr& b) { return where(unequal(a, a), a, where(a > b, a, b)); }
Expr smaller(Expr a, const Expr& b) { return where(unequal(a, a), a, where(a < b, a, b)); }

}  // namespace

// From here on one function a line, to be read as a table.
// clang-format off

Expr unary_expression(Statements& to, UnaryFn fn, Expr given, const Expr& alpha) {
  using enum UnaryFn;
  const Expr x = to.let(std::move(given));
  if (fn == logical_not) return call(Builtin::not_, x);
  const Expr zero = number(x, 0), one = number(x, 1);
  const bool real = kernel::is_float(x.type.scalar);
  switch (fn) {
    case neg: return -x;
    case abs: return lazy::abs(x);
    case sign: return real ? where(x > zero, one, where(x < zero, -one, x)) : where(x > zero, one, where(x < zero, number(x, -1), zero));
    case square: return x * x;
    case relu: return where(x <= zero, zero, x);
    case floor: return real ? call(Builtin::floor, x) : x;
    case ceil: return real ? call(Builtin::ceil, x) : x;
    case round: return real ? call(Builtin::rint, x) : x;
    case sqrt: return call(Builtin::sqrt, x);
    case rsqrt: return one / call(Builtin::sqrt, x);
    case reciprocal: return one / x;
    case exp: return lazy::exp(x);
    case expm1: return lazy::expm1(to, x);
    case log: return lazy::log(x);
    case log1p: return lazy::log1p(to, x);
    case sin: return call(Builtin::sin, x);
    case cos: return call(Builtin::cos, x);
    case tan: return call(Builtin::tan, x);
    case tanh: return call(Builtin::tanh, x);
    case sigmoid: return lazy::sigmoid(to, x);
    case erf: return call(Builtin::erf, x);
    case gelu_tanh: return x * lazy::sigmoid(to, to.let(x * (x * x * number(x, 2 * sqrt_2_over_pi * gelu_cubic) + number(x, 2 * sqrt_2_over_pi))));
    case gelu_erf: return x * number(x, 0.5) * call(Builtin::erfc, -x * number(x, sqrt_half));
    case silu: return x * lazy::sigmoid(to, x);
    case softplus: {
      const Expr z = to.let(alpha * x);
      return (where(z < zero, zero, z) + lazy::log1p(to, to.let(lazy::exp(-lazy::abs(z))))) / alpha;
    }
    case elu: return where(x > zero, x, alpha * lazy::expm1(to, x));
    case leaky_relu: return where(x > zero, x, alpha * x);
    case isnan: return real ? call(Builtin::isnan, x) : kernel::literal(false);
    case isfinite: return real ? call(Builtin::isfinite, x) : kernel::literal(true);
    default: return x;
  }
}

Expr backward_expression(Statements& to, UnaryFn fn, Expr given, Expr gradient, const Expr& alpha) {
  using enum UnaryFn;
  const Expr s = to.let(std::move(given)), dy = to.let(std::move(gradient));
  const Expr zero = number(s, 0), one = number(s, 1);
  switch (fn) {
    case abs: return dy * unary_expression(to, sign, s, alpha);
    case square: return dy * s * number(s, 2);
    case relu: return where(s > zero, dy, zero);
    case sqrt: return dy * (number(s, 0.5) / s);
    case rsqrt: return dy * number(s, -0.5) * s * s * s;
    case reciprocal: return -(dy * s * s);
    case exp: return dy * s;
    case expm1: return dy * (s + one);
    case log: return dy / s;
    case log1p: return dy / (s + one);
    case sin: return dy * call(Builtin::cos, s);
    case cos: return -(dy * call(Builtin::sin, s));
    case tan: return dy * (s * s + one);
    case tanh: return dy * (one - s * s);
    case sigmoid: return dy * (s * (one - s));
    case erf: return dy * (number(s, 1.1283791670955126) * lazy::exp(-(s * s)));  // 2 / sqrt(pi)
    case gelu_tanh: {  // g + x g (1 - g) u', with g = sigmoid(u); the clamp keeps infinity times 0 away
      const Expr x = to.let(smaller(larger(s, number(s, -20)), number(s, 20)));
      const Expr z = to.let(x * x);
      const Expr g = to.let(lazy::sigmoid(to, to.let(x * (z * number(s, 2 * sqrt_2_over_pi * gelu_cubic) + number(s, 2 * sqrt_2_over_pi)))));
      return dy * (g + g * (one - g) * (x * (z * number(s, 6 * sqrt_2_over_pi * gelu_cubic) + number(s, 2 * sqrt_2_over_pi))));
    }
    case gelu_erf: {
      const Expr x = to.let(smaller(larger(s, number(s, -100)), number(s, 100)));
      const Expr pdf = lazy::exp(x * x * number(s, -0.5)) * number(s, 0.3989422804014327);  // 1 / sqrt(2 pi)
      return dy * (call(Builtin::erfc, -x * number(s, sqrt_half)) * number(s, 0.5) + x * pdf);
    }
    case silu: {
      const Expr x = to.let(smaller(larger(s, number(s, -1000)), number(s, 1000)));
      const Expr g = to.let(lazy::sigmoid(to, x));
      return dy * (g * (one + x * (one - g)));
    }
    case softplus: return dy * lazy::sigmoid(to, to.let(s * alpha));
    case elu: return where(s > zero, dy, dy * lazy::exp(s) * alpha);
    case leaky_relu: return where(s > zero, dy, dy * alpha);
    default: throw GradientError("[" + std::string(to_string(fn)) + "] has no derivative");
  }
}

bool has_expression(BinaryFn fn, DType compute) {
  return is_floating(compute) || (fn != BinaryFn::pow && fn != BinaryFn::remainder);
}

Expr binary_expression(Statements& to, BinaryFn fn, Expr left, Expr right, op::ScalarSide side) {
  using enum BinaryFn;
  const Expr a = to.let(std::move(left)), b = to.let(std::move(right));
  // a > b || a != a ? a : b, with one comparison where one of them is a number for sure.
  const bool scalar_left = side == op::ScalarSide::left, scalar_right = side == op::ScalarSide::right;
  switch (fn) {
    case add: return a + b;
    case sub: return a - b;
    case mul: return a * b;
    case div: return a / b;
    case pow: return call(Builtin::pow, a, b);
    case maximum: return scalar_right ? where(a <= b, b, a) : scalar_left ? where(a > b, a, b) : larger(a, b);
    case minimum: return scalar_right ? where(b <= a, b, a) : scalar_left ? where(a < b, a, b) : smaller(a, b);
    case remainder: {  // the sign of the divisor
      const Expr r = to.let(call(Builtin::mod, a, b)), zero = number(a, 0);
      return where(equal(r, zero), call(Builtin::copysign, zero, b), where(unequal(r < zero, b < zero), r + b, r));
    }
    case atan2: return call(Builtin::atan2, a, b);
    case eq: return equal(a, b);
    case ne: return unequal(a, b);
    case lt: return a < b;
    case le: return a <= b;
    case gt: return a > b;
    case ge: return b <= a;
    case logical_and: return where(a, b, a);
    case logical_or: return where(a, a, b);
    case logical_xor: return unequal(a, b);
  }
  return a;
}

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
  const Expr x = to.let(std::move(value));
  switch (fn) {
    case ReduceFn::sum: return sum + x;
    case ReduceFn::prod: return sum * x;
    case ReduceFn::max: return where(unequal(x, x), x, where(x > sum, x, sum));
    case ReduceFn::min: return where(unequal(x, x), x, where(x < sum, x, sum));
    case ReduceFn::any: return where(sum, sum, x);
    case ReduceFn::all: return where(sum, x, sum);
  }
  return x;
}

// clang-format on

}  // namespace ferrite::lazy
