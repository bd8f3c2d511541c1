// Multi-tensor ops: global_norm, and the optimiser steps, which update their parameters in place.
#pragma once

#include <cmath>
#include <vector>

#include "ferrite/op.hpp"

namespace ferrite {
namespace op {

/// sqrt of the sum of squares over all inputs, as an f32 scalar (f64 if every input is f64).
struct FERRITE_API GlobalNorm {
  static constexpr std::string_view type_name = "global_norm";

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    Tensor<B> total;
    bool wide = true;
    for (const Tensor<B>& t : in) wide = wide && t.dtype() == DType::f64;
    for (const Tensor<B>& t : in) {
      const Tensor<B> squares = sum(square(cast(t, wide ? DType::f64 : DType::f32)));
      total = total.defined() ? total + squares : squares;
    }
    return {sqrt(total)};
  }
};

/// Inputs: n parameters, n gradients, n momentum buffers, and a clip factor [] that scales every gradient.
/// Outputs in place: parameters, momentum buffers. With momentum 0 the buffers are left as they are. Buffers
/// are f32 (f64 for f64 parameters).
/// v = momentum v + g + decay p;  p -= lr (nesterov ? g + decay p + momentum v : v)
struct FERRITE_API Sgd {
  static constexpr std::string_view type_name = "sgd";
  double lr = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;

  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("lr", self.lr);
    visit("momentum", self.momentum);
    visit("nesterov", self.nesterov);
    visit("weight_decay", self.weight_decay);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const std::size_t n = (in.size() - 1) / 3;
    const Tensor<B>& clip = in[3 * n];
    Tensors<B> out;
    out.resize(2 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const Tensor<B>&p = in[i], &v = in[2 * n + i];
      const Tensor<B> g = cast(in[n + i], v.dtype()) * clip + cast(p, v.dtype()) * weight_decay;
      const Tensor<B> moved = momentum != 0 ? v * momentum + g : g;
      const Tensor<B> step = momentum != 0 && nesterov ? g + moved * momentum : moved;
      out[i] = cast(cast(p, v.dtype()) - step * lr, p.dtype());
      out[n + i] = momentum != 0 ? moved : v;
    }
    return out;
  }
};

/// Inputs: n parameters, n gradients, n first moments, n second moments, and a clip factor []. Outputs in
/// place: parameters, first moments, second moments. `step` counts from 1. Moments are f32 (f64 for f64
/// parameters).
/// decoupled: AdamW's decay p -= lr decay p; otherwise Adam's, added to the gradient.
struct FERRITE_API Adam {
  static constexpr std::string_view type_name = "adam";
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;
  std::int64_t step = 1;

  std::string_view name() const { return decoupled ? "adamw" : "adam"; }
  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  static void attributes(auto& self, auto&& visit) {
    visit("lr", self.lr);
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("decoupled", self.decoupled);
    visit("step", self.step);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const std::size_t n = (in.size() - 1) / 4;
    const Tensor<B>& clip = in[4 * n];
    const double scale1 = 1 / (1 - std::pow(beta1, static_cast<double>(step)));
    const double scale2 = 1 / (1 - std::pow(beta2, static_cast<double>(step)));
    Tensors<B> out;
    out.resize(3 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const DType wide = in[2 * n + i].dtype();
      const Tensor<B> p = cast(in[i], wide);
      Tensor<B> g = cast(in[n + i], wide) * clip;
      if (!decoupled) g = g + p * weight_decay;
      const Tensor<B> m = in[2 * n + i] * beta1 + g * (1 - beta1);
      const Tensor<B> v = in[3 * n + i] * beta2 + square(g) * (1 - beta2);
      const Tensor<B> update = (m * scale1) / (sqrt(v * scale2) + eps);
      const Tensor<B> kept = decoupled ? p * (1 - lr * weight_decay) : p;
      out[i] = cast(kept - update * lr, in[i].dtype());
      out[n + i] = m;
      out[2 * n + i] = v;
    }
    return out;
  }
};

}  // namespace op

/// # Shapes: any -> []
template <class B>
Tensor<B> global_norm(const std::vector<Tensor<B>>& tensors) {
  return eval_list(op::GlobalNorm{}, TensorSpan<B>(tensors))[0];
}

}  // namespace ferrite
