// binary: elementwise functions of two tensors, or of a tensor and a scalar on either side. NumPy
// broadcasting and promotion. f16 and bf16 are computed in f32 and rounded once.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/formulas.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {
namespace op {

FERRITE_API std::string_view to_string(BinaryFn fn);
constexpr int count_of(BinaryFn) { return binary_fn_count; }
constexpr bool is_comparison(BinaryFn fn) { return fn >= BinaryFn::eq && fn <= BinaryFn::ge; }
constexpr bool is_logical(BinaryFn fn) { return fn >= BinaryFn::logical_and; }

/// Which operand the scalar attribute stands for; `none` means two tensor inputs.
enum class ScalarSide : std::uint8_t { none, left, right };
constexpr std::string_view to_string(ScalarSide side) {
  return side == ScalarSide::none ? "none" : side == ScalarSide::left ? "left" : "right";
}
constexpr int count_of(ScalarSide) { return 3; }

/// div is true division (integers give float_result). remainder has the sign of the divisor, like Python's %.
/// maximum and minimum return NaN if either operand is NaN, and take an integer scalar beyond the range of an
/// integer dtype as the nearest number of that range: as an element it would wrap. Comparisons and logic give
/// bool. An output may have the buffer and layout of an input.
struct FERRITE_API Binary {
  static constexpr LibraryName type_name = "binary";
  BinaryFn fn = BinaryFn::add;
  ScalarSide side = ScalarSide::none;
  Scalar scalar = 0;

  std::string_view name() const { return to_string(fn); }
  Metas infer(MetaSpan in) const;
  /// The dtype both operands are converted to before the function is applied.
  DType operand_dtype(MetaSpan in) const;
  /// The scalar as an operand of that dtype.
  Scalar operand(DType dtype) const;
  Metas example(DType d) const { return detail::alike(side == ScalarSide::none ? 2 : 1, {2, 3}, d); }
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("side", self.side);
    visit("scalar", self.scalar);
  }
  Saves saves() const;
  template <class B>
  void vjp(Vjp<B>& v) const;

 private:
  template <class B>
  void vjp_with_scalar(Vjp<B>& v) const;
  template <class B>
  void vjp_of_tensors(Vjp<B>& v) const;
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Binary& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Binary& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

#define FERRITE_BINARY(name, fn)                                            \
  template <class B>                                                        \
  Tensor<B> name(const Tensor<B>& a, const Tensor<B>& b) {                  \
    return eval(op::Binary{op::BinaryFn::fn}, a, b);                        \
  }                                                                         \
  template <class B>                                                        \
  Tensor<B> name(const Tensor<B>& a, std::type_identity_t<Scalar> b) {      \
    return eval(op::Binary{op::BinaryFn::fn, op::ScalarSide::right, b}, a); \
  }                                                                         \
  template <class B>                                                        \
  Tensor<B> name(std::type_identity_t<Scalar> a, const Tensor<B>& b) {      \
    return eval(op::Binary{op::BinaryFn::fn, op::ScalarSide::left, a}, b);  \
  }
FERRITE_BINARY(add, add)
FERRITE_BINARY(sub, sub)
FERRITE_BINARY(mul, mul)
FERRITE_BINARY(div, div)
FERRITE_BINARY(pow, pow)
FERRITE_BINARY(maximum, maximum)
FERRITE_BINARY(minimum, minimum)
FERRITE_BINARY(remainder, remainder)
FERRITE_BINARY(atan2, atan2)
FERRITE_BINARY(eq, eq)
FERRITE_BINARY(ne, ne)
FERRITE_BINARY(lt, lt)
FERRITE_BINARY(le, le)
FERRITE_BINARY(gt, gt)
FERRITE_BINARY(ge, ge)
FERRITE_BINARY(logical_and, logical_and)
FERRITE_BINARY(logical_or, logical_or)
FERRITE_BINARY(logical_xor, logical_xor)
FERRITE_BINARY(operator+, add)
FERRITE_BINARY(operator-, sub)
FERRITE_BINARY(operator*, mul)
FERRITE_BINARY(operator/, div)
FERRITE_BINARY(operator==, eq)
FERRITE_BINARY(operator!=, ne)
FERRITE_BINARY(operator<, lt)
FERRITE_BINARY(operator<=, le)
FERRITE_BINARY(operator>, gt)
FERRITE_BINARY(operator>=, ge)
#undef FERRITE_BINARY

/// low <= x <= high; NaN stays NaN. The gradient passes where x lies inside, bounds included.
template <class B>
Tensor<B> clamp(const Tensor<B>& x, Scalar low, Scalar high) {
  return minimum(maximum(x, low), high);
}

namespace op {

// A gradient of several ops computes wide (Vjp::wide_grad), in an order whose intermediates stay in range if
// the result does. Choices replace an operand before it could give a NaN that a later zero cannot undo.
template <class B>
void Binary::vjp(Vjp<B>& v) const {
  if (side == ScalarSide::none)
    vjp_of_tensors(v);
  else
    vjp_with_scalar(v);
}

template <class B>
void Binary::vjp_with_scalar(Vjp<B>& v) const {
  const Tensor<B> dy = v.grad();
  const bool right = side == ScalarSide::right;
  const double number = scalar.to_double();
  switch (fn) {
    case BinaryFn::add:
      return v.add(0, dy);
    case BinaryFn::sub:
      return right ? v.add(0, dy) : v.into(0, Unary{UnaryFn::neg}, dy);
    case BinaryFn::mul:
      return v.into(0, Binary{BinaryFn::mul, ScalarSide::right, scalar}, dy);
    case BinaryFn::div: {
      if (right) return v.into(0, Binary{BinaryFn::div, ScalarSide::right, scalar}, dy);
      const Tensor<B> x = v.wide_input(0);
      return v.add(0, -v.wide_grad() * (number / x / x));
    }
    case BinaryFn::pow: {
      const Tensor<B> x = v.wide_input(0);
      if (right)
        return number == 0 ? v.add(0, zeros_like(dy))
                           : v.add(0, v.wide_grad() * (pow(x, number - 1) * number));
      if (number != 0) return v.add(0, v.wide_grad() * (pow(number, x) * std::log(number)));
      return v.add(0, where(x >= 0, 0, v.wide_grad() * -std::numeric_limits<double>::infinity()));  // 0^x
    }
    case BinaryFn::maximum:  // ties and NaNs belong to the tensor, so that clamp passes its bounds
      return v.add(0, where(v.input(0) < scalar, 0, dy));
    case BinaryFn::minimum:
      return v.add(0, where(v.input(0) > scalar, 0, dy));
    case BinaryFn::remainder: {
      if (right) return v.add(0, dy);
      const Tensor<B> x = v.wide_input(0);
      return v.add(0, -v.wide_grad() * round((number - remainder(number, x)) / x));
    }
    case BinaryFn::atan2: {
      const Tensor<B> x = v.wide_input(0), size = maximum(abs(x), std::abs(number));
      const Tensor<B> u = x / size, w = number / size;
      const Tensor<B> d = v.wide_grad() / size * (w / (square(u) + square(w)));
      return v.add(0, right ? d : -d);
    }
    default:
      return;  // comparisons and logic have bool results, which carry no gradient
  }
}

template <class B>
void Binary::vjp_of_tensors(Vjp<B>& v) const {
  const Tensor<B> dy = v.grad();
  switch (fn) {
    case BinaryFn::add:
      if (v.needs(0)) v.add(0, dy);
      if (v.needs(1)) v.add(1, dy);
      return;
    case BinaryFn::sub:
      if (v.needs(0)) v.add(0, dy);
      if (v.needs(1)) v.into(1, Unary{UnaryFn::neg}, dy);
      return;
    case BinaryFn::mul:
      if (v.needs(0)) v.into(0, Binary{BinaryFn::mul}, dy, v.input(1));
      if (v.needs(1)) v.into(1, Binary{BinaryFn::mul}, dy, v.input(0));
      return;
    case BinaryFn::div:
      if (v.needs(0)) v.into(0, Binary{BinaryFn::div}, dy, v.input(1));
      if (v.needs(1)) {
        const Tensor<B> divisor = v.wide_input(1);
        v.add(1, -v.wide_grad() * (v.wide_input(0) / divisor / divisor));
      }
      return;
    case BinaryFn::pow: {
      const Tensor<B> d = v.wide_grad(), a = v.wide_input(0), b = v.wide_input(1);
      // x^0 has the derivative 0 at 0 too, where x^-1 is infinite.
      if (v.needs(0)) v.add(0, d * (b * pow(a, where(b == 0, 1, b) - 1)));
      // 0^b has the derivative 0 in b; log(0) would make it NaN.
      const Tensor<B> at_zero = logical_and(a == 0, b >= 0), base = where(at_zero, 1, a);
      if (v.needs(1)) v.add(1, d * (pow(base, b) * log(base)));
      return;
    }
    case BinaryFn::maximum:
    case BinaryFn::minimum: {  // ties are shared evenly; beside a NaN neither loses, so that both have it all
      const Tensor<B> a = v.input(0), b = v.input(1);
      const Tensor<B> share = where(a == b, dy * 0.5, dy);
      const bool max = fn == BinaryFn::maximum;
      if (v.needs(0)) v.add(0, where(max ? a < b : a > b, 0, share));
      if (v.needs(1)) v.add(1, where(max ? a > b : a < b, 0, share));
      return;
    }
    case BinaryFn::remainder:
      if (v.needs(0)) v.add(0, dy);
      if (v.needs(
              1)) {  // how often the divisor went into it: floor(a / b) is one off where a / b is rounded up
        const Tensor<B> a = v.wide_input(0), b = v.wide_input(1);
        v.add(1, -v.wide_grad() * round((a - remainder(a, b)) / b));
      }
      return;
    case BinaryFn::atan2: {
      const Tensor<B> a = v.wide_input(0), b = v.wide_input(1), size = maximum(abs(a), abs(b));
      const Tensor<B> u = a / size, w = b / size;
      const Tensor<B> d = v.wide_grad() / size / (square(u) + square(w));
      if (v.needs(0)) v.add(0, d * w);
      if (v.needs(1)) v.add(1, -(d * u));
      return;
    }
    default:
      return;
  }
}

}  // namespace op

// x += y means x = x + y, for tensors and scalars: the name is bound to a new value, with the shape and dtype
// of x + y. Other tensors that share x's buffer keep their values, and gradients flow through. A parameter
// that is assigned to is no longer a leaf.
#define FERRITE_ASSIGN(op)                                                  \
  template <class B>                                                        \
  Tensor<B>& operator op##=(Tensor<B>& a, const Tensor<B>& b) {             \
    return a = a op b;                                                      \
  }                                                                         \
  template <class B>                                                        \
  Tensor<B>& operator op##=(Tensor<B>& a, std::type_identity_t<Scalar> b) { \
    return a = a op b;                                                      \
  }
FERRITE_ASSIGN(+)
FERRITE_ASSIGN(-)
FERRITE_ASSIGN(*)
FERRITE_ASSIGN(/)
#undef FERRITE_ASSIGN

}  // namespace ferrite
