// fused_linear: a linear layer with the norm before it and the sum after it, for the few rows of a step of
// generation: there, each op by itself takes longer to start than to run.
#pragma once

#include <vector>

#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/quantized_linear.hpp"
#include "ferrite/ops/rms_norm.hpp"

namespace ferrite {

/// The norm that fused_linear applies to its rows first.
enum class RowNorm : std::uint8_t { none, layer, rms };
constexpr int count_of(RowNorm) { return static_cast<int>(RowNorm::rms) + 1; }

namespace op {

FERRITE_API std::string_view to_string(RowNorm norm);

/// residual + activation(norm(x) W^T + bias)
/// # Shapes: x [N, I], weight [O, I], then as the attributes say: scale [O] (of a quantized weight), norm
/// weight [I], norm bias [I] (of a layer norm), bias [O], residual [N, O] -> [N, O]
/// All but the weight and its scale have one dtype, which is the result's. The product has the weight's. A
/// quantized weight is i8, as quantized_linear takes it; the product then has x's dtype.
struct FERRITE_API FusedLinear {
  static constexpr LibraryName type_name = "fused_linear";
  static constexpr std::string_view later_attribute = "quantized";
  static constexpr bool composes_as_given = true;
  static constexpr Positions lowered = {1};
  static constexpr std::size_t storage_input = 1;
  RowNorm norm = RowNorm::none;
  double eps = 1e-5;
  Activation activation = Activation::none;
  bool bias = false;
  bool residual = false;
  bool quantized = false;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    norm = RowNorm::layer, activation = Activation::gelu, bias = residual = true;
    return {{{2, 8}, d}, {{4, 8}, d}, {{8}, d}, {{8}, d}, {{4}, d}, {{2, 4}, d}};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("norm", self.norm);
    visit("eps", self.eps);
    visit("activation", self.activation);
    visit("bias", self.bias);
    visit("residual", self.residual);
    visit("quantized", self.quantized);
  }
  /// The places of the inputs behind the weight; of those that are there.
  std::size_t norm_input() const { return quantized ? 3 : 2; }
  std::size_t bias_input() const { return norm_input() + norm_inputs(); }
  std::size_t residual_input() const { return bias_input() + (bias ? 1 : 0); }
  std::size_t norm_inputs() const { return norm == RowNorm::layer ? 2 : norm == RowNorm::rms ? 1 : 0; }

  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    Tensor<B> x = in[0];
    if (norm == RowNorm::layer) x = layer_norm(x, in[norm_input()], in[norm_input() + 1], eps);
    if (norm == RowNorm::rms) x = rms_norm(x, in[norm_input()], eps);
    const Tensor<B> y = product(x, in);
    return {residual ? y + in[residual_input()] : y};
  }

 private:
  template <class B>
  Tensor<B> product(const Tensor<B>& x, TensorSpan<B> in) const {
    if (quantized) {
      const QuantizedLinear op{activation};
      return bias ? eval(op, x, in[1], in[2], in[bias_input()]) : eval(op, x, in[1], in[2]);
    }
    const Linear op{activation};
    const DType inner = in[1].dtype();
    const Tensor<B> y = bias ? eval(op, cast(x, inner), in[1], cast(in[bias_input()], inner))
                             : eval(op, cast(x, inner), in[1]);
    return cast(y, x.dtype());
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
/// For up to 8 rows, or one if the weight is quantized: every weight is read once, by as many blocks as the
/// GPU has room for.
FERRITE_API void run(Cuda&, const op::FusedLinear& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cuda&, const op::FusedLinear& op, MetaSpan in);

using op::to_string;

}  // namespace ferrite
