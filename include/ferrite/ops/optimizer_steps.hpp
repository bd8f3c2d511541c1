// Multi-tensor ops: global_norm, and the optimiser steps, which update their parameters in place.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// sqrt of the sum of squares over all inputs, as an f32 scalar (f64 if every input is f64, or if asked for).
struct FERRITE_API GlobalNorm {
  static constexpr LibraryName type_name = "global_norm";
  static constexpr bool composes_as_given = true;

  std::optional<DType> dtype = std::nullopt;  ///< f32 or f64

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) { visit("dtype", self.dtype); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    Tensor<B> total;  // in f64, as kernels sum: squares of large f32 numbers would overflow
    Metas metas;
    for (const Tensor<B>& t : in) {
      metas.push_back(t.meta());
      const Tensor<B> squares = sum(square(cast(t, DType::f64)));
      total = total.defined() ? total + squares : squares;
    }
    return {cast(sqrt(total), infer(metas)[0].dtype)};
  }
};

// Both steps take their learning rate from the attributes, or from an optional last input, the schedule f64
// [2]: a learning rate, which multiplies `lr`, and a number of steps, which is added to `step`. As it lives
// on the device, it can change from one replay of a captured step to the next. The clip factor multiplies
// every gradient; if it is negative, the step changes nothing.

/// Inputs: n parameters, n gradients, n momentum buffers, a clip factor [] that scales every gradient, and
/// optionally the schedule. Outputs in place: parameters, momentum buffers. With momentum 0 the buffers do
/// not change. Buffers are f32 (f64 for f64 parameters). v = momentum v + g + decay p; p -= lr (nesterov ? g
/// + decay p + momentum v : v)
struct FERRITE_API Sgd {
  static constexpr LibraryName type_name = "sgd";
  static constexpr bool composes_as_given = true;
  double lr = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) const {
    return {{{3}, d}, {{3}, d}, detail::statistics({3}, d), detail::statistics({}, d)};
  }
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
      const Tensor<B> change =
          in.size() > 3 * n + 1 ? step * cast(select(in[3 * n + 1], 0, 0) * lr, v.dtype()) : step * lr;
      out[i] = where(clip < 0, p, cast(cast(p, v.dtype()) - change, p.dtype()));
      out[n + i] = momentum != 0 ? where(clip < 0, v, moved) : v;
    }
    return out;
  }
};

/// Inputs: n parameters, n gradients, n first moments, n second moments, a clip factor [], and optionally the
/// schedule. Outputs in place: parameters, first moments, second moments. `step` counts from 1. Moments are
/// f32 (f64 for f64 parameters). decoupled: AdamW's decay p -= lr decay p; otherwise Adam's, added to the
/// gradient. With `copies`, a 16-bit dtype, the parameters are f32 and n more outputs get them rounded to it.
struct FERRITE_API Adam {
  static constexpr LibraryName type_name = "adam";
  static constexpr bool composes_as_given = true;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;
  std::int64_t step = 1;
  std::optional<DType> copies = std::nullopt;

  std::string_view name() const { return decoupled ? "adamw" : "adam"; }
  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  Metas example(DType d) const {
    return {{{3}, d},
            {{3}, d},
            detail::statistics({3}, d),
            detail::statistics({3}, d),
            detail::statistics({}, d)};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("lr", self.lr);
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("decoupled", self.decoupled);
    visit("step", self.step);
    visit("copies", self.copies);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const std::size_t n = (in.size() - 1) / 4;
    if (in.size() == 4 * n + 1) {
      const auto steps = static_cast<double>(step);
      return update<B>(in, lr, 1 / (1 - std::pow(beta1, steps)), 1 / (1 - std::pow(beta2, steps)),
                       1 - lr * weight_decay);
    }
    const Tensor<B> rate = select(in[4 * n + 1], 0, 0) * lr, steps = select(in[4 * n + 1], 0, 1) + step;
    return update<B>(in, rate, 1 / (1 - pow(beta1, steps)), 1 / (1 - pow(beta2, steps)),
                     1 - rate * weight_decay);
  }

 private:
  /// The numbers are double, or f64 tensors [].
  template <class B, class Number>
  Tensors<B> update(TensorSpan<B> in, const Number& rate, const Number& scale1, const Number& scale2,
                    const Number& keep) const {
    const std::size_t n = (in.size() - 1) / 4;
    const Tensor<B>& clip = in[4 * n];
    const Tensor<B> skips = clip < 0;
    Tensors<B> out;
    out.resize((copies ? 4 : 3) * n);
    for (std::size_t i = 0; i < n; ++i) {
      const DType wide = in[2 * n + i].dtype();
      const auto number = [&](const Number& x) {
        if constexpr (std::is_same_v<Number, double>)
          return x;
        else
          return cast(x, wide);
      };
      const Tensor<B> p = cast(in[i], wide);
      Tensor<B> g = cast(in[n + i], wide) * clip;
      if (!decoupled) g = g + p * weight_decay;
      const Tensor<B> m = in[2 * n + i] * beta1 + g * (1 - beta1);
      const Tensor<B> v = in[3 * n + i] * beta2 + square(g) * (1 - beta2);
      const Tensor<B> change = (m * number(scale1)) / (sqrt(v * number(scale2)) + eps);
      const Tensor<B> kept = decoupled ? p * number(keep) : p;
      out[i] = where(skips, in[i], cast(kept - change * number(rate), in[i].dtype()));
      out[n + i] = where(skips, in[2 * n + i], m);
      out[2 * n + i] = where(skips, in[3 * n + i], v);
      if (copies) out[3 * n + i] = cast(out[i], *copies);
    }
    return out;
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::GlobalNorm& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::GlobalNorm& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::Sgd& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Sgd& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::Adam& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Adam& op, Ins in, Outs out);

/// In f32 unless all tensors are f64, or in `dtype`. # Shapes: any -> []
template <class B>
Tensor<B> global_norm(const std::vector<Tensor<B>>& tensors, std::optional<DType> dtype = std::nullopt) {
  return eval_list(op::GlobalNorm{dtype}, TensorSpan<B>(tensors))[0];
}

}  // namespace ferrite
