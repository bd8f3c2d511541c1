// Linear and Embedding: the layers that consist of one matrix.
#pragma once

#include <cmath>
#include <optional>

#include "ferrite/nn/init.hpp"
#include "ferrite/nn/module.hpp"

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

/// activation(x W^T + b)
template <class B>
class Linear final : public Layer<B> {
 public:
  Tensor<B> weight;  // [out, in]
  Tensor<B> bias;    // [out], or undefined

  Linear(B& backend, const LinearConfig& config, Rng& rng)
      : weight(parameter(config.weight_init.create(backend, {config.out, config.in}, rng, config.dtype),
                         "weight")),
        activation_(config.activation) {
    if (!config.bias) return;
    const Initializer init = config.bias_init.value_or(bias_initializer(weight.shape()));
    bias = parameter(init.create(backend, {config.out}, rng, config.dtype), "bias");
  }

  void visit(Visitor<B>& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
  }
  /// # Shapes: x [..., in] -> [..., out]
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same, added to a residual [..., out], which may be undefined.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& residual) {
    return linear(x, weight, bias, activation_, residual);
  }
  Activation activation() const { return activation_; }

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

/// Rows of a table by id.
template <class B>
class Embedding final : public Layer<B> {
 public:
  Tensor<B> weight;  // [rows, dim]

  Embedding(B& backend, const EmbeddingConfig& config, Rng& rng)
      : weight(
            parameter(config.init.create(backend, {config.rows, config.dim}, rng, config.dtype), "weight")) {}

  void visit(Visitor<B>& v) override { v.parameter("weight", weight); }
  /// # Shapes: ids integer [...] -> [..., dim]
  Tensor<B> forward(const Tensor<B>& ids) override { return embedding(weight, ids); }
};

}  // namespace ferrite::nn
