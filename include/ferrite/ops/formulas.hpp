// The elementwise functions, the losses and their derivatives, in one place. Every backend computes these
// formulas in its own arithmetic.
//
// A formula is a template over values and a Math, which says how to compute with them:
//
//   formulas::Standard<T>   elements, by the standard library: Reference, f64 of Cpu, integers everywhere
//   cpu::FastMath           f32 elements of Cpu, by polynomials that become vector code
//   cuda::DeviceMath<T>     elements on the GPU
//   lazy::TermMath          expressions of the kernel language, which Lazy fuses
//   op::TensorMath          whole tensors: what UnaryBackward and the losses compose
//
// A Math `m` has m(0.5) for a constant, m.select(c, a, b) for c ? a : b with both sides computed (without
// branches a loop over elements becomes vector code), m.let(v) to name a value v that is used twice, and
// functions by their names. If it has its own version of one of the parts below (sigmoid, gated, ...), that
// version is used.
//
// To add a function: its name in the enum, its lines in `unary` and `backward` or in `binary`, and its name
// and what it saves in src/ops/unary.cpp or binary.cpp.
#pragma once

#include <cstdint>

#include "ferrite/ops/standard_math.hpp"

namespace ferrite {
namespace op {

enum class UnaryFn : std::uint8_t {
  // results of the input's dtype, integers allowed
  neg,
  abs,
  sign,
  square,
  relu,
  // integers pass through unchanged
  floor,
  ceil,
  round,
  // real functions: integers are promoted by float_result
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tan,
  tanh,
  sigmoid,
  erf,
  gelu_tanh,
  gelu_erf,
  silu,
  softplus,
  elu,
  leaky_relu,
  // bool results
  logical_not,
  isnan,
  isfinite
};
inline constexpr int unary_fn_count = static_cast<int>(UnaryFn::isfinite) + 1;

enum class BinaryFn : std::uint8_t {
  add,
  sub,
  mul,
  div,
  pow,
  maximum,
  minimum,
  remainder,
  atan2,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_xor
};
inline constexpr int binary_fn_count = static_cast<int>(BinaryFn::logical_xor) + 1;

enum class LossFn : std::uint8_t { mse, l1, huber, bce_with_logits };

}  // namespace op

namespace formulas {

using op::BinaryFn;
using op::LossFn;
using op::UnaryFn;

// gelu_tanh(x) = x sigmoid(u), u = 2 sqrt(2 / pi) (x + 0.044715 x^3) = x (linear + cubic x^2)
inline constexpr double gelu_linear = 1.5957691216057308, gelu_cubic = gelu_linear * 0.044715;

// From here on there is one function per line, like a table.

namespace detail {  // parts of the functions; a Math may have its own version of each

/// 1 / (1 + e^-x), without overflow of exp for large negative x.
template <class M, class T>
FERRITE_FORMULA T sigmoid(const M& m, const T& given) {
  if constexpr (requires { m.sigmoid(given); })
    return m.sigmoid(given);
  else {
    const T x = m.let(given), e = m.let(m.exp(-m.abs(x)));
    return m.select(x < 0, e, m(1)) / (e + 1);
  }
}
/// x sigmoid(u)
template <class M, class T>
FERRITE_FORMULA T gated(const M& m, const T& x, const T& u) {
  if constexpr (requires { m.gated(x, u); })
    return m.gated(x, u);
  else
    return x * detail::sigmoid(m, u);
}
/// sigmoid(u) (1 + slope (1 - sigmoid(u))): the derivative of x sigmoid(u), where slope = x u'.
template <class M, class T>
FERRITE_FORMULA T gate_slope(const M& m, const T& u, const T& slope) {
  if constexpr (requires { m.gate_slope(u, slope); })
    return m.gate_slope(u, slope);
  else {
    const T g = m.let(detail::sigmoid(m, u));
    return g + g * (slope * (1 - g));
  }
}
/// 2 / sqrt(pi) e^(-x^2)
template <class M, class T>
FERRITE_FORMULA T erf_slope(const M& m, const T& x) {
  if constexpr (requires { m.erf_slope(x); })
    return m.erf_slope(x);
  else
    return m.exp(-(x * x)) * m(1.1283791670955126);
}
/// x Phi(x)
template <class M, class T>
FERRITE_FORMULA T gelu_erf(const M& m, const T& x) {
  if constexpr (requires { m.gelu_erf(x); })
    return m.gelu_erf(x);
  else
    return x * m(0.5) * m.erfc(x * m(-0.7071067811865476));
}
/// Phi(x) + x phi(x)
template <class M, class T>
FERRITE_FORMULA T gelu_erf_slope(const M& m, const T& given) {
  if constexpr (requires { m.gelu_erf_slope(given); })
    return m.gelu_erf_slope(given);
  else {
    const T x = m.let(m.within(given, 40));
    return m.erfc(x * m(-0.7071067811865476)) * m(0.5) + x * (m.exp(x * x * m(-0.5)) * m(0.3989422804014327));
  }
}
/// Python's %: with the sign of the divisor; NaN for a divisor of 0.
template <class M, class T>
FERRITE_FORMULA T remainder(const M& m, const T& a, const T& b) {
  if constexpr (!M::is_real)
    return m.remainder(a, b);
  else {
    const T r = m.let(m.fmod(a, b));
    return m.select(r == 0, m.copysign(m(0), b), m.select((r < 0) != (b < 0), r + b, r));
  }
}

/// f(x) of floats. `unary` has the rest.
template <class M, class T, class A>
FERRITE_FORMULA T real_unary(const M& m, UnaryFn fn, const T& x, const A& alpha) {
  using enum UnaryFn;
  switch (fn) {
    case floor:
      return m.floor(x);
    case ceil:
      return m.ceil(x);
    case round:
      return m.round(x);
    case sqrt:
      return m.sqrt(x);
    case rsqrt:
      return m.rsqrt(x);
    case reciprocal:
      return 1 / x;
    case exp:
      return m.exp(x);
    case expm1:
      return m.expm1(x);
    case log:
      return m.log(x);
    case log1p:
      return m.log1p(x);
    case sin:
      return m.sin(x);
    case cos:
      return m.cos(x);
    case tan:
      return m.tan(x);
    case tanh:
      return m.tanh(x);
    case sigmoid:
      return detail::sigmoid(m, x);
    case erf:
      return m.erf(x);
    // x / 2 (1 + tanh(u / 2)) = x sigmoid(u), without the cancellation for negative x
    case gelu_tanh:
      return detail::gated(m, x, T(x * (x * x * m(gelu_cubic) + m(gelu_linear))));
    case gelu_erf:
      return detail::gelu_erf(m, x);
    case silu:
      return detail::gated(m, x, x);
    case softplus: {
      const T z = m.let(alpha * x);
      return (m.select(z < 0, m(0), z) + m.log1p(m.exp(-m.abs(z)))) / alpha;
    }
    case elu:
      return m.select(x > 0, x, alpha * m.expm1(x));
    case leaky_relu:
      return m.select(x > 0, x, alpha * x);
    default:
      return x;
  }
}

}  // namespace detail

/// f(x). NaN stays NaN in every function except the last three. Truth values are 0 or 1 if a Math has no
/// bool. Integers never reach the functions with real results: they are promoted to floats first.
template <class M, class T, class A>
FERRITE_FORMULA T unary(const M& m, UnaryFn fn, const T& x, const A& alpha) {
  using enum UnaryFn;
  switch (fn) {
    case neg:
      return m.neg(x);
    case abs:
      return m.abs(x);
    case sign:
      return m.sign(x);
    case square:
      return m.mul(x, x);
    case relu:
      return m.select(x <= 0, m(0), x);
    case logical_not:
      return m.truth(x == 0);
    case isnan:
      return m.truth(x != x);
    case isfinite:
      return m.truth(m.sub(x, x) == 0);
    default:
      if constexpr (M::is_real)
        return detail::real_unary(m, fn, x, alpha);
      else
        return x;  // floor, ceil, round
  }
}

/// dy f'(x), from s: y = f(x) if op::Unary::differentiates_from_output, else x. If the derivative chooses, so
/// does the result: an infinite dy times a slope of 0 is 0. dy comes first where the slope alone may
/// overflow. It is 0 for the step functions.
template <class M, class T, class A>
FERRITE_FORMULA T backward(const M& m, UnaryFn fn, const T& s, const T& dy, const A& alpha) {
  using enum UnaryFn;
  switch (fn) {
    case neg:
      return -dy;
    case abs:
      return dy * m.sign(s);
    case square:
      return dy * s * 2;
    case relu:
      return m.select(s > 0, dy, m(0));
    case sqrt:
      return dy * (m(0.5) / s);
    case rsqrt:
      return dy * m(-0.5) * s * s * s;
    case reciprocal:
      return -(dy * s * s);
    case exp:
      return dy * s;
    case expm1:
      return dy * (s + 1);
    case log:
      return dy / s;
    case log1p:
      return dy / (s + 1);
    case sin:
      return dy * m.cos(s);
    case cos:
      return -(dy * m.sin(s));
    case tan:
      return dy * (s * s + 1);
    case tanh:
      return dy * (1 - s * s);
    case sigmoid:
      return dy * (s * (1 - s));
    case erf:
      return dy * detail::erf_slope(m, s);
    // The gates' slopes are 0 or 1 beyond these bounds, in double too, and infinity times 0 would be NaN.
    case gelu_tanh: {
      const T x = m.let(m.within(s, 30)), z = m.let(x * x);
      return dy * detail::gate_slope(m, T(x * (z * m(gelu_cubic) + m(gelu_linear))),
                                     T(x * (z * m(3 * gelu_cubic) + m(gelu_linear))));
    }
    case gelu_erf:
      return dy * detail::gelu_erf_slope(m, s);
    case silu:
      return dy * detail::gate_slope(m, s, T(m.within(s, 800)));
    case softplus:
      return dy * detail::sigmoid(m, T(s * alpha));
    case elu:
      return m.select(s > 0, dy, dy * m.exp(s) * alpha);
    case leaky_relu:
      return m.select(s > 0, dy, dy * alpha);
    default:
      return dy * 0;
  }
}

/// f(a, b). Truth values as in `unary`; a NaN is true, as in C++ and NumPy. Integers never reach div and
/// atan2.
template <class M, class T>
FERRITE_FORMULA T binary(const M& m, BinaryFn fn, const T& a, const T& b) {
  using enum BinaryFn;
  switch (fn) {
    case add:
      return m.add(a, b);
    case sub:
      return m.sub(a, b);
    case mul:
      return m.mul(a, b);
    case pow:
      return m.pow(a, b);
    case maximum:
      return m.select((a > b) | (a != a), a, b);  // `||` would be a branch
    case minimum:
      return m.select((a < b) | (a != a), a, b);
    case remainder:
      return detail::remainder(m, a, b);
    case eq:
      return m.truth(a == b);
    case ne:
      return m.truth(a != b);
    case lt:
      return m.truth(a < b);
    case le:
      return m.truth(a <= b);
    case gt:
      return m.truth(a > b);
    case ge:
      return m.truth(a >= b);
    case logical_and:
      return m.truth((a != 0) & (b != 0));
    case logical_or:
      return m.truth((a != 0) | (b != 0));
    case logical_xor:
      return m.truth((a != 0) != (b != 0));
    default:
      if constexpr (M::is_real)
        return fn == div ? a / b : m.atan2(a, b);
      else
        return a;
  }
}

/// The loss of prediction x and target t.
template <class M, class T, class A>
FERRITE_FORMULA T loss(const M& m, LossFn fn, const T& x, const T& t, const A& delta) {
  using enum LossFn;
  switch (fn) {
    case mse: {
      const T d = m.let(x - t);
      return d * d;
    }
    case l1:
      return m.abs(x - t);
    case huber: {
      const T d = m.let(m.abs(x - t));
      return m.select(d <= delta, d * d * m(0.5), (d - m(0.5) * delta) * delta);
    }
    // max(x, 0) - x t + log(1 + exp(-|x|)): no overflow on either side
    default:
      return m.select(x < 0, m(0), x) - x * t + m.log1p(m.exp(-m.abs(x)));
  }
}

/// Its derivative by x.
template <class M, class T, class A>
FERRITE_FORMULA T loss_slope(const M& m, LossFn fn, const T& x, const T& t, const A& delta) {
  using enum LossFn;
  switch (fn) {
    case mse:
      return (x - t) * 2;
    case l1:
      return m.sign(x - t);
    case huber:
      return m.within(x - t, delta);
    default:
      return detail::sigmoid(m, x) - t;
  }
}

// clang-format on
}  // namespace formulas
}  // namespace ferrite
