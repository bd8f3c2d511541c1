// Conv2d and the pools.
#pragma once

#include "ferrite/nn/linear.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/pool2d.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite::nn {

/// Conv2dConfig(in, out, extent): channels before and after, and the kernel. By default stride 1, no padding,
/// no dilation and one group.
struct Conv2dConfig {
  std::int64_t in;
  std::int64_t out;
  Shape kernel;  // (vertical, horizontal), as all pairs here
  ferrite::Conv2dConfig geometry{};
  bool bias = true;
  DType dtype = DType::f32;
  Initializer weight_init = Initializer::kaiming_uniform(std::sqrt(5.0));

  Conv2dConfig(std::int64_t in_channels, std::int64_t out_channels, std::int64_t extent)
      : Conv2dConfig(in_channels, out_channels, Shape{extent, extent}) {}
  Conv2dConfig(std::int64_t in_channels, std::int64_t out_channels, const Shape& kernel_extents)
      : in(in_channels), out(out_channels), kernel(kernel_extents) {}

  Conv2dConfig with_stride(std::int64_t v) const { return reshaped(geometry.with_stride(v)); }
  Conv2dConfig with_padding(std::int64_t v) const { return reshaped(geometry.with_padding(v)); }
  Conv2dConfig with_dilation(std::int64_t v) const { return reshaped(geometry.with_dilation(v)); }
  Conv2dConfig with_groups(std::int64_t v) const { return reshaped(geometry.with_groups(v)); }
  Conv2dConfig with_bias(bool v) const { return detail::with(*this, &Conv2dConfig::bias, v); }
  Conv2dConfig with_dtype(DType v) const { return detail::with(*this, &Conv2dConfig::dtype, v); }
  Conv2dConfig with_init(Initializer v) const { return detail::with(*this, &Conv2dConfig::weight_init, v); }

 private:
  Conv2dConfig reshaped(const ferrite::Conv2dConfig& v) const {
    return detail::with(*this, &Conv2dConfig::geometry, v);
  }
};

/// Cross-correlation over the last two axes.
template <class B>
class Conv2d final : public Layer<B> {
 public:
  Tensor<B> weight;  // [out, in / groups, kh, kw]
  Tensor<B> bias;    // [out], or undefined

  Conv2d(B& backend, const Conv2dConfig& config, Rng& rng) : geometry_(config.geometry) {
    detail::check_rank("Conv2d", "kernel", config.kernel, 2);
    const std::int64_t groups = config.geometry.geometry.groups;
    config.geometry.geometry.check("Conv2d");
    if (config.in % groups != 0 || config.out % groups != 0)
      throw ValueError("[Conv2d] " + std::to_string(config.in) + " to " + std::to_string(config.out) +
                       " channels in " + std::to_string(groups) + " groups: groups must divide both");
    const Shape shape{config.out, config.in / groups, config.kernel[0], config.kernel[1]};
    weight = first_weight("Conv2d", config.weight_init, backend, shape, rng, config.dtype);
    if (config.bias)
      bias = parameter(bias_initializer(shape).create(backend, {config.out}, rng, config.dtype), "bias");
  }

  void visit(Visitor<B>& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
  }
  /// # Shapes: x [N, in, H, W] -> [N, out, Ho, Wo]
  Tensor<B> forward(const Tensor<B>& x) override { return conv2d(x, weight, bias, geometry_); }

 private:
  ferrite::Conv2dConfig geometry_;
};

/// The largest element of each window.
template <class B>
class MaxPool2d final : public Layer<B> {
 public:
  explicit MaxPool2d(PoolConfig config) : config_(config) {}
  void visit(Visitor<B>&) override {}
  /// # Shapes: x [N, C, H, W] -> [N, C, Ho, Wo]
  Tensor<B> forward(const Tensor<B>& x) override { return max_pool2d(x, config_); }

 private:
  PoolConfig config_;
};

/// The mean of each window.
template <class B>
class AvgPool2d final : public Layer<B> {
 public:
  explicit AvgPool2d(PoolConfig config) : config_(config) {}
  void visit(Visitor<B>&) override {}
  /// # Shapes: x [N, C, H, W] -> [N, C, Ho, Wo]
  Tensor<B> forward(const Tensor<B>& x) override { return avg_pool2d(x, config_); }

 private:
  PoolConfig config_;
};

}  // namespace ferrite::nn
