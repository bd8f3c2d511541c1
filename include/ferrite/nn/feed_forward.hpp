// FeedForward.
#pragma once

#include "ferrite/nn/fused.hpp"
#include "ferrite/ops/gated_activation.hpp"

namespace ferrite::nn {

/// FeedForwardConfig{dim, hidden}
struct FeedForwardConfig {
  std::int64_t dim = 0;
  std::int64_t hidden = 0;
  Activation activation = Activation::gelu;
  bool bias = true;
  DType dtype = DType::f32;
  /// Of up's weight; its bias is then zero. Absent: as a Linear has them.
  std::optional<Initializer> init = std::nullopt;
  /// Of down's weight, likewise.
  std::optional<Initializer> residual_init = std::nullopt;
  /// A second projection of x is multiplied by the activated one: SwiGLU with Activation::silu.
  bool gated = false;

  FeedForwardConfig with_activation(Activation v) const {
    return detail::with(*this, &FeedForwardConfig::activation, v);
  }
  FeedForwardConfig with_bias(bool v) const { return detail::with(*this, &FeedForwardConfig::bias, v); }
  FeedForwardConfig with_dtype(DType v) const { return detail::with(*this, &FeedForwardConfig::dtype, v); }
  FeedForwardConfig with_init(std::optional<Initializer> v) const {
    return detail::with(*this, &FeedForwardConfig::init, v);
  }
  FeedForwardConfig with_residual_init(std::optional<Initializer> v) const {
    return detail::with(*this, &FeedForwardConfig::residual_init, v);
  }
  FeedForwardConfig with_gated(bool v) const { return detail::with(*this, &FeedForwardConfig::gated, v); }
};

/// Two linear layers with an activation between them: down(f(up(x))), or down(f(gate(x)) * up(x)) if gated.
template <class B>
class FeedForward final : public Layer<B> {
 public:
  Linear<B> up;                   // dim -> hidden
  Linear<B> down;                 // hidden -> dim
  std::optional<Linear<B>> gate;  // dim -> hidden

  FeedForward(B& backend, const FeedForwardConfig& config, Rng& rng)
      : up(backend,
           part(config, {config.dim, config.hidden}, config.init)
               .with_activation(config.gated ? Activation::none : config.activation),
           rng),
        down(backend, part(config, {config.hidden, config.dim}, config.residual_init), rng),
        activation_(config.activation) {
    if (config.gated) gate.emplace(backend, part(config, {config.dim, config.hidden}, config.init), rng);
  }

  void visit(Visitor<B>& v) override {
    v.child("up", up);
    v.child("down", down);
    if (gate) v.child("gate", *gate);
  }
  /// # Shapes: x [..., dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same, added to a residual [..., dim], which may be undefined.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& residual) {
    if (!gate) return down.forward(up.forward(x), residual);
    return down.forward(gated_activation(gate->forward(x), up.forward(x), activation_), residual);
  }
  /// x + forward(norm(x)), in fewer ops: for steps of few rows.
  Tensor<B> step(const Tensor<B>& x, const Norm<B>& norm) {
    const Tensor<B> raised = fused_linear(up, x, &norm);
    if (!gate) return fused_linear(down, raised, {}, x);
    return fused_linear(down, gated_activation(fused_linear(*gate, x, &norm), raised, activation_), {}, x);
  }

 private:
  static LinearConfig part(const FeedForwardConfig& config, const LinearConfig& extents,
                           const std::optional<Initializer>& init) {
    const LinearConfig linear = extents.with_bias(config.bias).with_dtype(config.dtype);
    return init ? linear.with_init(*init).with_bias_init(Initializer::zeros()) : linear;
  }

  Activation activation_;
};

}  // namespace ferrite::nn
