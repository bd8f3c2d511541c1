// conv2d: cross-correlation over two spatial axes. f16 and bf16 accumulate in f32.
#pragma once

#include "ferrite/core/config.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/pad.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite {
namespace op {

/// Geometry shared by the convolution and its gradients. Pairs are (vertical, horizontal).
struct FERRITE_API ConvGeometry {
  Shape stride{1, 1};
  Shape padding{0, 0};
  Shape dilation{1, 1};
  std::int64_t groups = 1;

  static void attributes(auto& self, auto&& visit) {
    visit("stride", self.stride);
    visit("padding", self.padding);
    visit("dilation", self.dilation);
    visit("groups", self.groups);
  }
  /// Extent of the output along spatial axis i; ShapeError if the kernel does not fit.
  std::int64_t output_extent(std::string_view op, int i, std::int64_t input, std::int64_t kernel) const;
  /// Throws ValueError for non-positive strides, dilations, groups or negative padding.
  void check(std::string_view op) const;

  /// x [N, C, H, W] -> patches [G, N Ho Wo, C/G kh kw], the rows a matrix product can use.
  template <class B>
  Tensor<B> patches(const Tensor<B>& x, std::int64_t kh, std::int64_t kw) const {
    const Tensor<B> padded = pad(x, {0, 0, padding[0], padding[1]}, {0, 0, padding[0], padding[1]});
    const Tensor<B> rows = windows(padded, 2, kh, stride[0], dilation[0]);  // [N, C, Ho, Wp, kh]
    const Tensor<B> w = windows(rows, 3, kw, stride[1], dilation[1]);       // [N, C, Ho, Wo, kh, kw]
    const std::int64_t n = x.size(0), c = x.size(1) / groups, ho = w.size(2), wo = w.size(3);
    const Tensor<B> split = reshape(w, {n, groups, c, ho, wo, kh, kw});
    return reshape(permute(split, {1, 0, 3, 4, 2, 5, 6}), {groups, n * ho * wo, c * kh * kw});
  }
  /// The transpose of `patches`: sums patch elements back to [N, C, H, W].
  template <class B>
  Tensor<B> unpatch(const Tensor<B>& p, const Shape& x, const Shape& y, std::int64_t kh,
                    std::int64_t kw) const {
    const std::int64_t n = x[0], c = x[1] / groups, ho = y[2], wo = y[3];
    const Tensor<B> split = permute(reshape(p, {groups, n, ho, wo, c, kh, kw}), {1, 0, 4, 2, 3, 5, 6});
    const Tensor<B> w = reshape(split, {n, x[1], ho, wo, kh, kw});
    const std::int64_t hp = x[2] + 2 * padding[0], wp = x[3] + 2 * padding[1];
    const Tensor<B> rows = eval(Fold{3, wp, stride[1], dilation[1]}, w);       // [N, C, Ho, Wp, kh]
    const Tensor<B> padded = eval(Fold{2, hp, stride[0], dilation[0]}, rows);  // [N, C, Hp, Wp]
    return eval(Slice{3, padding[1], x[3], 1}, eval(Slice{2, padding[0], x[2], 1}, padded));
  }
  /// y [N, O, Ho, Wo] <-> [G, N Ho Wo, O/G]
  template <class B>
  Tensor<B> to_rows(const Tensor<B>& y) const {
    const std::int64_t n = y.size(0), o = y.size(1) / groups, ho = y.size(2), wo = y.size(3);
    return reshape(permute(reshape(y, {n, groups, o, ho, wo}), {1, 0, 3, 4, 2}), {groups, n * ho * wo, o});
  }
  template <class B>
  Tensor<B> from_rows(const Tensor<B>& rows, const Shape& y) const {
    const Tensor<B> split = reshape(rows, {groups, y[0], y[2], y[3], y[1] / groups});
    return reshape(permute(split, {1, 0, 4, 2, 3}), y);
  }
};

/// # Shapes: x [N, C, H, W], weight [O, C/groups, kh, kw], bias [O] (optional) -> [N, O, Ho, Wo]
/// Computed in f32 (f64 for f64) with the bias, then rounded once. Under a weight that is not finite, a
/// backend may count padding as 0 or give NaN.
struct FERRITE_API Conv2d {
  static constexpr LibraryName type_name = "conv2d";
  static constexpr Positions lowered = {0, 1, 2};
  ConvGeometry geometry;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{1, 2, 4, 4}, d}, {{3, 2, 3, 3}, d}, {{3}, d}}; }
  static void attributes(auto& self, auto&& visit) { ConvGeometry::attributes(self.geometry, visit); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>&x = in[0], &w = in[1];
    const Meta metas[] = {x.meta(), w.meta()};
    const Shape y = infer(metas)[0].shape;
    const std::int64_t g = geometry.groups, o = w.size(0) / g;
    const Tensor<B> p = geometry.patches(x, w.size(2), w.size(3));
    const Tensor<B> kernel = reshape(w, {g, o, p.size(2)});
    const Tensor<B> out = geometry.from_rows(matmul(p, transpose(kernel, 1, 2)), y);
    return {in.size() > 2 ? out + reshape(in[2], {1, y[1], 1, 1}) : out};
  }
  Saves saves() const { return {.inputs = {0, 1}}; }  // x, weight
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dx of `input` shape from (dy, weight).
struct FERRITE_API Conv2dInputGrad {
  static constexpr LibraryName type_name = "conv2d_input_grad";
  static constexpr Positions lowered = {0, 1};
  ConvGeometry geometry;
  Shape input;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    input = {1, 2, 4, 4};
    return {{{1, 3, 2, 2}, d}, {{3, 2, 3, 3}, d}};
  }
  static void attributes(auto& self, auto&& visit) {
    ConvGeometry::attributes(self.geometry, visit);
    visit("input", self.input);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>&dy = in[0], &w = in[1];
    const std::int64_t g = geometry.groups;
    const Tensor<B> kernel = reshape(w, {g, w.size(0) / g, w.size(1) * w.size(2) * w.size(3)});
    const Tensor<B> p = matmul(geometry.to_rows(dy), kernel);
    return {geometry.unpatch(p, input, dy.shape(), w.size(2), w.size(3))};
  }
};

/// dweight of `weight` shape from (dy, x).
struct FERRITE_API Conv2dWeightGrad {
  static constexpr LibraryName type_name = "conv2d_weight_grad";
  static constexpr Positions lowered = {0, 1};
  ConvGeometry geometry;
  Shape weight;
  std::optional<DType> at_least = {};  // the result's dtype: bf16 x bf16 -> f32

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    weight = {3, 2, 3, 3};
    return {{{1, 3, 2, 2}, d}, {{1, 2, 4, 4}, d}};
  }
  static void attributes(auto& self, auto&& visit) {
    ConvGeometry::attributes(self.geometry, visit);
    visit("weight", self.weight);
    visit("at_least", self.at_least);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B> p = geometry.patches(in[1], weight[2], weight[3]);
    // The sums stay wide on a backend that rounds the operands (Autocast).
    return {reshape(eval(Matmul{p.dtype()}, transpose(geometry.to_rows(in[0]), 1, 2), p), weight)};
  }
};

template <class B>
void Conv2d::vjp(Vjp<B>& v) const {
  if (v.needs(0)) v.into(0, Conv2dInputGrad{geometry, v.input_meta(0).shape}, v.grad(), v.input(1));
  if (v.needs(1)) {
    const Meta& weight = v.input_meta(1);
    v.into(1, Conv2dWeightGrad{geometry, weight.shape, weight.dtype}, v.grad(), v.input(0));
  }
  if (v.needs(2)) v.into(2, Reduce{ReduceFn::sum, {0, 2, 3}, false, v.input_meta(2).dtype}, v.grad());
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Conv2d& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Conv2d& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::Conv2d& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Conv2d& op, MetaSpan in);
FERRITE_API void run(Cpu&, const op::Conv2dInputGrad& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Conv2dInputGrad& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API bool accepts(const Cpu&, const op::Conv2dInputGrad& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Conv2dInputGrad& op, MetaSpan in);
FERRITE_API void run(Cpu&, const op::Conv2dWeightGrad& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Conv2dWeightGrad& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API bool accepts(const Cpu&, const op::Conv2dWeightGrad& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Conv2dWeightGrad& op, MetaSpan in);

/// By default stride 1, no padding, no dilation and one group. Pairs are (vertical, horizontal).
struct Conv2dConfig {
  op::ConvGeometry geometry;
  Conv2dConfig with_stride(std::int64_t v) const { return with_stride(v, v); }
  Conv2dConfig with_stride(std::int64_t h, std::int64_t w) const {
    return with(&op::ConvGeometry::stride, {h, w});
  }
  Conv2dConfig with_padding(std::int64_t v) const { return with_padding(v, v); }
  Conv2dConfig with_padding(std::int64_t h, std::int64_t w) const {
    return with(&op::ConvGeometry::padding, {h, w});
  }
  Conv2dConfig with_dilation(std::int64_t v) const { return with(&op::ConvGeometry::dilation, {v, v}); }
  Conv2dConfig with_groups(std::int64_t v) const { return with(&op::ConvGeometry::groups, v); }

 private:
  template <class T>
  Conv2dConfig with(T op::ConvGeometry::*member, std::type_identity_t<T> v) const {
    return {detail::with(geometry, member, v)};
  }
};

/// # Shapes: x [N, C, H, W], weight [O, C/groups, kh, kw], bias [O] or undefined -> [N, O, Ho, Wo]
/// The weight decides the dtype, as in linear.
template <class B>
Tensor<B> conv2d(const Tensor<B>& x, const Tensor<B>& weight, const Tensor<B>& bias = {},
                 Conv2dConfig config = {}) {
  detail::check_weight_decides("conv2d", "x", x.dtype(), weight.dtype());
  if (bias.defined()) detail::check_weight_decides("conv2d", "bias", bias.dtype(), weight.dtype());
  const op::Conv2d convolve{config.geometry};
  return bias.defined() ? eval(convolve, x, weight, bias) : eval(convolve, x, weight);
}

}  // namespace ferrite
