// quantized_linear: linear with a weight of 8 bits, for inference. Decoding text is limited by reading the
// weights, which take a quarter of the memory.
//
//   const auto q = quantize_rows(weight);                     // i8 [O, I] and a scale for each row
//   const auto y = quantized_linear(x, q.weight, q.scale);    // about linear(x, weight)
#pragma once

#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/where.hpp"

namespace ferrite {
namespace op {

/// activation(x W^T + bias), W = weight * scale, row by row. The result has x's dtype; f16 and bf16 are
/// computed in f32. The gradients of x, scale and bias are those of the composition; a weight of integers
/// has none.
/// # Shapes: x [N, I], weight i8 [O, I], scale [O], bias [O] (optional) -> [N, O]
struct FERRITE_API QuantizedLinear {
  static constexpr LibraryName type_name = "quantized_linear";
  static constexpr Positions lowered = {0};
  static constexpr std::size_t storage_input = 1;
  Activation activation = Activation::none;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, {{4, 3}, DType::i8}, {{4}, DType::f32}, {{4}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("activation", self.activation); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    Tensor<B> y = matmul(in[0], transpose(cast(in[1], in[0].dtype()), 0, 1)) * in[2];
    if (in.size() > 3) y = y + in[3];
    return {activation == Activation::none ? y : eval(activation_op(activation), y)};
  }
};

}  // namespace op

// Kernels (backend/concept.hpp). f64 is composed.
FERRITE_API void run(Cpu&, const op::QuantizedLinear& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::QuantizedLinear& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::QuantizedLinear& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::QuantizedLinear& op, MetaSpan in);

/// # Shapes: x [..., I], weight i8 [O, I], scale [O], bias [O] or undefined -> [..., O], of x's dtype
template <class B>
Tensor<B> quantized_linear(const Tensor<B>& x, const Tensor<B>& weight, const Tensor<B>& scale,
                           const Tensor<B>& bias = {}, Activation activation = Activation::none) {
  if (x.rank() < 1 || weight.rank() != 2 || x.size(-1) != weight.size(1))
    throw ShapeError("[quantized_linear] x " + to_string(x.shape()) + " and weight " +
                     to_string(weight.shape()) +
                     ": the weight must be [out, in] with `in` equal to x's last extent");
  Shape shape = x.shape();
  shape[x.rank() - 1] = weight.size(0);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x.shape()[i];
  const Tensor<B> flat = reshape(x, {rows, x.size(-1)});
  const op::QuantizedLinear op{activation};
  const Tensor<B> y = bias.defined() ? eval(op, flat, weight, scale, bias) : eval(op, flat, weight, scale);
  return reshape(y, shape);
}

/// A matrix in 8 bits: about weight * scale, row by row.
template <class B>
struct QuantizedRows {
  Tensor<B> weight;  // i8 [O, I], from -127 to 127
  Tensor<B> scale;   // f32 [O]
};

/// The nearest 8-bit weights, with the largest element of each row at 127 or -127. Records no gradients.
/// # Shapes: weight floating [O, I]
template <class B>
QuantizedRows<B> quantize_rows(const Tensor<B>& weight) {
  detail::check_floating("quantize_rows", "weight", weight.dtype());
  detail::check_rank("quantize_rows", "weight", weight.shape(), 2);
  const Tensor<B> w = cast(weight.detach(), DType::f32);
  const Tensor<B> largest = w.size(1) > 0 ? max(abs(w), {1}) : zeros(w.backend(), {w.size(0)}, DType::f32);
  const Tensor<B> scale = where(largest == 0, ones_like(largest), largest / 127);
  return {cast(round(w / unsqueeze(scale, 1)), DType::i8), scale};
}

/// weight * scale, row by row. # Shapes: weight i8 [..., O, I], scale [..., O] -> the weight's
template <class B>
Tensor<B> dequantize_rows(const Tensor<B>& weight, const Tensor<B>& scale, DType dtype) {
  return cast(cast(weight, DType::f32) * unsqueeze(scale, -1), dtype);
}

}  // namespace ferrite
