// Linear and Embedding: the layers that consist of one matrix.
#pragma once

#include <cmath>
#include <optional>

#include "ferrite/nn/init.hpp"
#include "ferrite/nn/module.hpp"
#include "ferrite/ops/quantized_linear.hpp"

namespace ferrite::nn {

/// LinearConfig{in, out}: features before and after.
struct LinearConfig {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
  /// Applied to the result.
  Activation activation = Activation::none;
  DType dtype = DType::f32;
  Initializer weight_init = Initializer::kaiming_uniform(std::sqrt(5.0));
  /// Absent: U(-1/sqrt(in), 1/sqrt(in)).
  std::optional<Initializer> bias_init = std::nullopt;

  LinearConfig with_bias(bool v) const { return detail::with(*this, &LinearConfig::bias, v); }
  LinearConfig with_activation(Activation v) const {
    return detail::with(*this, &LinearConfig::activation, v);
  }
  LinearConfig with_dtype(DType v) const { return detail::with(*this, &LinearConfig::dtype, v); }
  LinearConfig with_init(Initializer v) const { return detail::with(*this, &LinearConfig::weight_init, v); }
  LinearConfig with_bias_init(Initializer v) const {
    return detail::with(*this, &LinearConfig::bias_init, v);
  }
};

/// PyTorch's initialisation of biases, from the weight that belongs to them.
inline Initializer bias_initializer(const Shape& weight) {
  const double bound = 1 / std::sqrt(fans_of(weight).in);
  return Initializer::uniform(-bound, bound);
}

/// The weight of a layer; errors carry the layer's name.
template <class B>
Tensor<B> first_weight(std::string_view layer, const Initializer& init, B& backend, const Shape& shape,
                       Rng& rng, DType dtype) {
  return parameter(detail::run_parts(layer, [&] { return init.create(backend, shape, rng, dtype); }),
                   "weight");
}

/// A matrix that may be quantized: then `scale` is defined.
template <class B>
void visit_matrix(Visitor<B>& v, Tensor<B>& weight, Tensor<B>& scale) {
  if (!scale.defined()) return v.parameter("weight", weight);
  v.buffer("weight", weight);
  v.buffer("scale", scale);
}
template <class B>
void quantize_matrix(Tensor<B>& weight, Tensor<B>& scale) {
  if (scale.defined()) return;
  auto rows = quantize_rows(weight);
  weight = std::move(rows.weight);
  scale = std::move(rows.scale);
}

/// activation(x W^T + b). After quantize() the weight is i8, for inference: it is then a buffer, which no
/// optimiser changes.
template <class B>
class Linear final : public Layer<B> {
 public:
  Tensor<B> weight;  // [out, in]
  Tensor<B> scale;   // of the rows of a quantized weight, f32 [out]; else undefined
  Tensor<B> bias;    // [out], or undefined

  Linear(B& backend, const LinearConfig& config, Rng& rng)
      : weight(
            first_weight("Linear", config.weight_init, backend, {config.out, config.in}, rng, config.dtype)),
        activation_(config.activation) {
    if (!config.bias) return;
    const Initializer init = config.bias_init.value_or(bias_initializer(weight.shape()));
    bias = parameter(init.create(backend, {config.out}, rng, config.dtype), "bias");
  }

  void visit(Visitor<B>& v) override {
    visit_matrix(v, weight, scale);
    v.parameter("bias", bias);
  }
  /// # Shapes: x [..., in] -> [..., out]
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same, added to a residual [..., out], which may be undefined.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& residual) {
    if (!scale.defined()) return linear(x, weight, bias, activation_, residual);
    const Tensor<B> y = quantized_linear(x, weight, scale, bias, activation_);
    return residual.defined() ? y + residual : y;
  }
  Activation activation() const { return activation_; }
  /// Rounds the weight to 8 bits (see quantize_rows), once.
  void quantize() { quantize_matrix(weight, scale); }

 private:
  Activation activation_;
};

/// EmbeddingConfig{rows, dim}: the number of ids, and the length of a row.
struct EmbeddingConfig {
  std::int64_t rows = 0;
  std::int64_t dim = 0;
  DType dtype = DType::f32;
  Initializer init = Initializer::normal();

  EmbeddingConfig with_dtype(DType v) const { return detail::with(*this, &EmbeddingConfig::dtype, v); }
  EmbeddingConfig with_init(Initializer v) const { return detail::with(*this, &EmbeddingConfig::init, v); }
};

/// Rows of a table by id. It can be quantized as a Linear.
template <class B>
class Embedding final : public Layer<B> {
 public:
  Tensor<B> weight;  // [rows, dim]
  Tensor<B> scale;   // of the rows of a quantized table, f32 [rows]; else undefined

  Embedding(B& backend, const EmbeddingConfig& config, Rng& rng)
      : weight(first_weight("Embedding", config.init, backend, {config.rows, config.dim}, rng, config.dtype)),
        dtype_(config.dtype) {}

  void visit(Visitor<B>& v) override { visit_matrix(v, weight, scale); }
  /// # Shapes: ids integer [...] -> [..., dim]
  Tensor<B> forward(const Tensor<B>& ids) override {
    if (!scale.defined()) return embedding(weight, ids);
    const Tensor<B> scales = squeeze(embedding(unsqueeze(scale, 1), ids), {-1});
    return dequantize_rows(embedding(weight, ids), scales, dtype_);
  }
  /// The table as the weight of a linear layer: the product of x with every row. # Shapes: x [..., dim] ->
  /// [..., rows]
  Tensor<B> project(const Tensor<B>& x) const {
    return scale.defined() ? quantized_linear(x, weight, scale) : linear(x, weight);
  }
  /// The table as floating numbers: the weight itself unless it is quantized.
  Tensor<B> table() const { return scale.defined() ? dequantize_rows(weight, scale, dtype_) : weight; }
  void quantize() { quantize_matrix(weight, scale); }

 private:
  DType dtype_;
};

}  // namespace ferrite::nn
