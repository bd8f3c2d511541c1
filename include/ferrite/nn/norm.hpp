// LayerNorm, RmsNorm, Norm (either of them), BatchNorm2d.
#pragma once

#include "ferrite/nn/init.hpp"
#include "ferrite/nn/module.hpp"
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/rms_norm.hpp"

namespace ferrite::nn {

/// Whether a Norm is a LayerNorm or an RmsNorm.
enum class NormKind : std::uint8_t { layer, rms };

/// NormConfig{dim}: the extent of the last axis.
struct NormConfig {
  std::int64_t dim = 0;
  /// Added to the variance (or mean square), so that rows of equal values do not divide by zero.
  double eps = 1e-5;
  DType dtype = DType::f32;
  /// Of a Norm; the other layers are of one kind.
  NormKind kind = NormKind::layer;

  NormConfig with_eps(double v) const { return detail::with(*this, &NormConfig::eps, v); }
  NormConfig with_dtype(DType v) const { return detail::with(*this, &NormConfig::dtype, v); }
  NormConfig with_kind(NormKind v) const { return detail::with(*this, &NormConfig::kind, v); }
};

/// Zero mean and unit variance over the last axis, then scale and shift.
template <class B>
class LayerNorm final : public Layer<B> {
 public:
  Tensor<B> weight;  // [dim], ones
  Tensor<B> bias;    // [dim], zeros

  LayerNorm(B& backend, const NormConfig& config)
      : weight(parameter(ones(backend, {config.dim}, config.dtype), "weight")),
        bias(parameter(zeros(backend, {config.dim}, config.dtype), "bias")),
        eps_(config.eps) {}

  void visit(Visitor<B>& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
  }
  /// # Shapes: x [..., dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return layer_norm(x, weight, bias, eps_); }
  double eps() const { return eps_; }

 private:
  double eps_;
};

/// Divides by the root mean square over the last axis, then scales.
template <class B>
class RmsNorm final : public Layer<B> {
 public:
  Tensor<B> weight;  // [dim], ones

  RmsNorm(B& backend, const NormConfig& config)
      : weight(parameter(ones(backend, {config.dim}, config.dtype), "weight")), eps_(config.eps) {}

  void visit(Visitor<B>& v) override { v.parameter("weight", weight); }
  /// # Shapes: x [..., dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return rms_norm(x, weight, eps_); }
  double eps() const { return eps_; }

 private:
  double eps_;
};

/// LayerNorm or RmsNorm, as the config says: for models that have either.
template <class B>
class Norm final : public Layer<B> {
 public:
  Tensor<B> weight;  // [dim], ones
  Tensor<B> bias;    // [dim], zeros; undefined for rms

  Norm(B& backend, const NormConfig& config)
      : weight(parameter(ones(backend, {config.dim}, config.dtype), "weight")), eps_(config.eps) {
    if (config.kind == NormKind::layer) bias = parameter(zeros(backend, {config.dim}, config.dtype), "bias");
  }

  void visit(Visitor<B>& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
  }
  /// # Shapes: x [..., dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return of(x); }
  Tensor<B> of(const Tensor<B>& x) const {
    return bias.defined() ? layer_norm(x, weight, bias, eps_) : rms_norm(x, weight, eps_);
  }
  double eps() const { return eps_; }

 private:
  double eps_;
};

/// BatchNormConfig{channels}: the extent of axis 1.
struct BatchNormConfig {
  std::int64_t channels = 0;
  double eps = 1e-5;
  /// The share of the newest batch in the running statistics.
  double momentum = 0.1;
  DType dtype = DType::f32;

  BatchNormConfig with_eps(double v) const { return detail::with(*this, &BatchNormConfig::eps, v); }
  BatchNormConfig with_momentum(double v) const { return detail::with(*this, &BatchNormConfig::momentum, v); }
  BatchNormConfig with_dtype(DType v) const { return detail::with(*this, &BatchNormConfig::dtype, v); }
};

/// Normalises each channel: in training by the batch's statistics, which also move the running ones; in
/// inference by the running ones. The running variance is unbiased, as in PyTorch. A batch that
/// checkpoint(...) runs again counts twice.
template <class B>
class BatchNorm2d final : public Layer<B> {
 public:
  Tensor<B> weight;        // [channels], ones
  Tensor<B> bias;          // [channels], zeros
  Tensor<B> running_mean;  // [channels], zeros; f32, or f64 for f64
  Tensor<B> running_var;   // [channels], ones

  BatchNorm2d(B& backend, const BatchNormConfig& config)
      : weight(parameter(ones(backend, {config.channels}, config.dtype), "weight")),
        bias(parameter(zeros(backend, {config.channels}, config.dtype), "bias")),
        running_mean(zeros(backend, {config.channels}, wide_dtype(config.dtype))),
        running_var(ones(backend, {config.channels}, wide_dtype(config.dtype))),
        config_(config) {}

  void visit(Visitor<B>& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
    v.buffer("running_mean", running_mean);
    v.buffer("running_var", running_var);
  }

  /// # Shapes: x [N, channels, H, W] -> the same. Training needs more than one element per channel.
  Tensor<B> forward(const Tensor<B>& x) override {
    detail::check_rank("BatchNorm2d", "x", x.shape(), 4);
    detail::check_shape("BatchNorm2d", "channels of x", {x.size(1)}, weight.shape());
    if (this->mode() == Mode::inference)
      return batch_norm_with(x, weight, bias, running_mean, running_var, config_.eps);
    const double count = static_cast<double>(x.size(0) * x.size(2) * x.size(3));
    if (count < 2)
      throw ShapeError("[BatchNorm2d] x " + to_string(x.shape()) +
                       ": training needs more than one element per channel");
    const BatchNormResult<B> result = batch_norm(x, weight, bias, config_.eps);
    const Tensor<B> biased = maximum(reciprocal(square(result.rstd)) - config_.eps, 0);
    running_mean = blend(running_mean, result.mean);
    running_var = blend(running_var, biased * (count / (count - 1)));
    return result.y;
  }

 private:
  Tensor<B> blend(const Tensor<B>& running, const Tensor<B>& batch) const {
    return running * (1 - config_.momentum) + batch * config_.momentum;
  }
  BatchNormConfig config_;
};

}  // namespace ferrite::nn
