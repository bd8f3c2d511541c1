// where: elementwise choice between two operands, each a tensor or a scalar. masked_fill.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// Inputs (condition, on_true, on_false), without the operand that is given as a scalar. The condition is
/// bool; all three broadcast.
struct FERRITE_API Where {
  static constexpr LibraryName type_name = "where";
  ScalarSide side = ScalarSide::none;  // left: on_true is the scalar, right: on_false is
  Scalar scalar = 0;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) const {
    Metas in{{{2, 3}, DType::bool_}, {{2, 3}, d}};
    if (side == ScalarSide::none) in.push_back(in[1]);
    return in;
  }
  static void attributes(auto& self, auto&& visit) {
    visit("side", self.side);
    visit("scalar", self.scalar);
  }
  Saves saves() const { return {.inputs = {0}}; }  // condition
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> condition = v.input(0);
    const std::size_t on_false = side == ScalarSide::none ? 2 : 1;
    if (side != ScalarSide::left && v.needs(1)) v.into(1, Where{ScalarSide::right, 0}, condition, v.grad());
    if (side != ScalarSide::right && v.needs(on_false))
      v.into(on_false, Where{ScalarSide::left, 0}, condition, v.grad());
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Where& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Where& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

/// The dtypes of the operands promote. Two scalars give bool, i64 or f32, by their kinds.
template <class B>
Tensor<B> where(const Tensor<B>& condition, const Tensor<B>& on_true, const Tensor<B>& on_false) {
  return eval(op::Where{}, condition, on_true, on_false);
}
template <class B>
Tensor<B> where(const Tensor<B>& condition, const Tensor<B>& on_true, std::type_identity_t<Scalar> on_false) {
  return eval(op::Where{op::ScalarSide::right, on_false}, condition, on_true);
}
template <class B>
Tensor<B> where(const Tensor<B>& condition, std::type_identity_t<Scalar> on_true, const Tensor<B>& on_false) {
  return eval(op::Where{op::ScalarSide::left, on_true}, condition, on_false);
}
template <class B>
Tensor<B> where(const Tensor<B>& condition, std::type_identity_t<Scalar> on_true,
                std::type_identity_t<Scalar> on_false) {
  const DType dtype = promote(DType::bool_, on_true.kind() < on_false.kind() ? on_false : on_true);
  return where(condition, on_true, full(condition.backend(), {}, on_false, dtype));
}
/// x with `value` wherever the mask is true.
template <class B>
Tensor<B> masked_fill(const Tensor<B>& x, const Tensor<B>& mask, Scalar value) {
  return where(mask, value, x);
}

}  // namespace ferrite
