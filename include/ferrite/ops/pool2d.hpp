// pool2d: the maximum or mean of windows over two spatial axes.
#pragma once

#include <limits>

#include "ferrite/core/config.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/pad.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite {
namespace op {

/// Pairs are (vertical, horizontal); a stride of 0 means the kernel's extent. Padding is at most half the
/// kernel.
struct FERRITE_API PoolGeometry {
  Shape kernel{2, 2};
  Shape stride{0, 0};
  Shape padding{0, 0};

  static void attributes(auto& self, auto&& visit) {
    visit("kernel", self.kernel);
    visit("stride", self.stride);
    visit("padding", self.padding);
  }
  std::int64_t step(int i) const { return stride[i] > 0 ? stride[i] : kernel[i]; }
  /// [N, C, Ho, Wo] of x [N, C, H, W], with all checks.
  Shape output(std::string_view op, const Shape& x) const;

  /// [N, C, Ho, Wo, kh, kw], padded with `value`.
  template <class B>
  Tensor<B> windows_of(const Tensor<B>& x, double value) const {
    const Tensor<B> padded = pad(x, {0, 0, padding[0], padding[1]}, {0, 0, padding[0], padding[1]}, value);
    return windows(windows(padded, 2, kernel[0], step(0)), 3, kernel[1], step(1));
  }
};

/// # Shapes: x [N, C, H, W] -> y [N, C, Ho, Wo], index i64 [N, C, Ho, Wo]: the place h W + w of the maximum
/// in its plane (the first of equals; NaN counts as the maximum).
struct FERRITE_API MaxPool2d {
  static constexpr LibraryName type_name = "max_pool2d";
  static constexpr bool composes_as_given = true;
  PoolGeometry geometry;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(1, {1, 2, 4, 4}, d); }
  static void attributes(auto& self, auto&& visit) { PoolGeometry::attributes(self.geometry, visit); }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const std::int64_t height = in[0].size(2), width = in[0].size(3), plane = height * width;
    const Tensor<B> w = flatten(geometry.windows_of(in[0], -std::numeric_limits<double>::infinity()), 4, 5);
    const Tensor<B> hit = logical_or(w == max(w, {-1}, KeepDim::yes), isnan(w));
    // Padding has places after those of the plane, so it never wins, not even among -inf.
    const Tensor<B> places = reshape(arange(b, plane), {1, 1, height, width});
    const Tensor<B> at = flatten(geometry.windows_of(places, static_cast<double>(plane)), 4, 5);
    const Tensor<B> index = min(where(hit, at, plane), {-1});
    const Tensor<B> y = gather(flatten(in[0], 2, 3), 2, flatten(index, 2, 3));
    return {reshape(y, index.shape()), index};
  }
  Saves saves() const { return {.outputs = {1}}; }  // index
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dx of `input` shape from (dy, index). An index outside its plane [0, H W) is a ValueError.
struct FERRITE_API MaxPool2dBackward {
  static constexpr LibraryName type_name = "max_pool2d_backward";
  static constexpr bool composes_as_given = true;
  Shape input;

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    input = {1, 2, 4, 4};
    return {{{1, 2, 2, 2}, d}, detail::ids({1, 2, 2, 2})};
  }
  static void attributes(auto& self, auto&& visit) { visit("input", self.input); }
  [[noreturn]] void throw_place(std::int64_t index, std::int64_t position) const;
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const auto places = in[1].template to_vector<std::int64_t>();
    for (std::size_t i = 0; i < places.size();
         ++i)  // a scatter would accept negative ones and count them from the end
      if (places[i] < 0 || places[i] >= input[2] * input[3])
        throw_place(places[i], static_cast<std::int64_t>(i));
    const Tensor<B> plane = zeros(b, {input[0], input[1], input[2] * input[3]}, in[0].dtype());
    return {reshape(scatter_add(plane, 2, flatten(in[1], 2, 3), flatten(in[0], 2, 3)), input)};
  }
};

/// # Shapes: x [N, C, H, W] -> [N, C, Ho, Wo]. Padding counts as zeros in the mean.
struct FERRITE_API AvgPool2d {
  static constexpr LibraryName type_name = "avg_pool2d";
  PoolGeometry geometry;

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(1, {1, 2, 4, 4}, d); }
  static void attributes(auto& self, auto&& visit) { PoolGeometry::attributes(self.geometry, visit); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const double area = static_cast<double>(geometry.kernel.numel());
    return {sum(geometry.windows_of(in[0], 0), {4, 5}) * (1.0 / area)};
  }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dx of `input` shape from dy.
struct FERRITE_API AvgPool2dBackward {
  static constexpr LibraryName type_name = "avg_pool2d_backward";
  PoolGeometry geometry;
  Shape input;

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    input = {1, 2, 4, 4};
    return detail::alike(1, {1, 2, 2, 2}, d);
  }
  static void attributes(auto& self, auto&& visit) {
    PoolGeometry::attributes(self.geometry, visit);
    visit("input", self.input);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>& dy = in[0];
    const Shape &kernel = geometry.kernel, &padding = geometry.padding;
    const Tensor<B> share = reshape(dy * (1.0 / static_cast<double>(kernel.numel())),
                                    {dy.size(0), dy.size(1), dy.size(2), dy.size(3), 1, 1});
    const Tensor<B> w = expand(share, {dy.size(0), dy.size(1), dy.size(2), dy.size(3), kernel[0], kernel[1]});
    const Tensor<B> rows = eval(Fold{3, input[3] + 2 * padding[1], geometry.step(1), 1}, w);
    const Tensor<B> padded = eval(Fold{2, input[2] + 2 * padding[0], geometry.step(0), 1}, rows);
    return {eval(Slice{3, padding[1], input[3], 1}, eval(Slice{2, padding[0], input[2], 1}, padded))};
  }
};

template <class B>
void MaxPool2d::vjp(Vjp<B>& v) const {
  v.into(0, MaxPool2dBackward{v.input_meta(0).shape}, v.grad(), v.output(1));
}
template <class B>
void AvgPool2d::vjp(Vjp<B>& v) const {
  v.into(0, AvgPool2dBackward{geometry, v.input_meta(0).shape}, v.grad());
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::MaxPool2d& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::MaxPool2d& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::MaxPool2dBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::MaxPool2dBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API bool accepts(const Cuda&, const op::MaxPool2dBackward& op, MetaSpan in);
FERRITE_API void run(Cpu&, const op::AvgPool2d& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::AvgPool2d& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::AvgPool2dBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::AvgPool2dBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);

/// The windows of a pool.
struct PoolConfig {
  op::PoolGeometry geometry;
  /// Windows of `extent` x `extent`, not overlapping unless with_stride says so.
  explicit PoolConfig(std::int64_t extent) { geometry.kernel = {extent, extent}; }
  PoolConfig with_stride(std::int64_t v) const { return with(&op::PoolGeometry::stride, {v, v}); }
  PoolConfig with_padding(std::int64_t v) const { return with(&op::PoolGeometry::padding, {v, v}); }

 private:
  template <class T>
  PoolConfig with(T op::PoolGeometry::*member, std::type_identity_t<T> v) const {
    return detail::with(*this, &PoolConfig::geometry, detail::with(geometry, member, v));
  }
};

template <class B>
Tensor<B> max_pool2d(const Tensor<B>& x, PoolConfig config) {
  return eval(op::MaxPool2d{config.geometry}, x);
}
template <class B>
Tensor<B> avg_pool2d(const Tensor<B>& x, PoolConfig config) {
  return eval(op::AvgPool2d{config.geometry}, x);
}

}  // namespace ferrite
