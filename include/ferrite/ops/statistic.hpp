// statistic: reductions made of several passes: mean, var, logsumexp, norm.
#pragma once

#include <algorithm>
#include <cmath>

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite {
namespace op {

enum class StatisticFn : std::uint8_t { mean, var, logsumexp, norm };
FERRITE_API std::string_view to_string(StatisticFn fn);
constexpr int count_of(StatisticFn) { return static_cast<int>(StatisticFn::norm) + 1; }

/// `parameter`: degrees of freedom subtracted from the count (var), or the order p of the norm (1, 2 or
/// infinity). Integers give float_result. f16 and bf16 are computed in f32 and rounded once: a sum may exceed
/// the range of f16 although its mean does not. The norm of nothing is 0; any other statistic of nothing is a
/// ShapeError.
struct FERRITE_API Statistic {
  static constexpr LibraryName type_name = "statistic";
  StatisticFn fn = StatisticFn::mean;
  Shape axes;
  bool keepdim = false;
  double parameter = 0;

  std::string_view name() const { return to_string(fn); }
  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    if (fn == StatisticFn::norm) parameter = 2;
    return detail::alike(1, {2, 3}, d);
  }
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("axes", self.axes);
    visit("keepdim", self.keepdim);
    visit("parameter", self.parameter);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {of(cast(in[0], float_result(in[0].dtype())))};  // of integers; floats are wide already
  }
  /// The mean's own; the others are composed.
  bool has_vjp(Positions) const { return fn == StatisticFn::mean; }
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Shape &shape = v.input_meta(0).shape, all = normalize_axes(name(), axes, shape.rank());
    const Tensor<B> share = v.wide_grad() * (1.0 / static_cast<double>(reduced_count(shape, all)));
    v.add(0, expand(reshape(share, reduced_shape(shape, all, true)), shape));
  }

 private:
  /// sum(x) / divisor, scaled by a power of two: the sum alone may overflow although the quotient does not.
  template <class B>
  static Tensor<B> divided_sum(const Tensor<B>& x, const Shape& axes, KeepDim keep, double count,
                               double divisor) {
    const double scale = std::exp2(-std::ceil(std::log2(std::max(count, 1.0))));
    return sum(x * scale, axes, keep) * (1 / (scale * divisor));
  }
  template <class B>
  Tensor<B> of(const Tensor<B>& x) const {
    const Shape all = normalize_axes(name(), axes, x.rank());
    const double count = static_cast<double>(reduced_count(x.shape(), all));
    const KeepDim keep = keepdim ? KeepDim::yes : KeepDim::no;
    switch (fn) {
      case StatisticFn::mean:
        return divided_sum(x, axes, keep, count, count);
      case StatisticFn::var: {
        // Scaled before they are squared: squares may overflow although their mean does not.
        const double scale = std::exp2(-std::ceil(std::log2(std::max(count, 1.0)) / 2));
        const Tensor<B> centred = x - divided_sum(x, axes, KeepDim::yes, count, count);
        return sum(square(centred * scale), axes, keep) * (1 / (scale * scale * (count - parameter)));
      }
      case StatisticFn::logsumexp: {
        // An infinite maximum would give inf - inf; the shift only needs to be finite and large enough.
        const Tensor<B> top = max(x, axes, KeepDim::yes).detach();
        const Tensor<B> shift = where(isfinite(top), top, 0);
        const Tensor<B> y = log(sum(exp(x - shift), axes, KeepDim::yes)) + shift;
        return keepdim ? y : reshape(y, reduced_shape(x.shape(), all, false));
      }
      default: {
        if (x.numel() == 0) return sum(x, axes, keep);
        if (std::isinf(parameter)) return max(abs(x), axes, keep);
        if (parameter == 1) return sum(abs(x), axes, keep);
        // Relative to the largest element, whose square may overflow. The norm of zeros has gradient 0, where
        // that of sqrt is infinite.
        const Tensor<B> top = max(abs(x), axes, KeepDim::yes).detach();
        const Tensor<B> scale = where(logical_and(isfinite(top), top > 0), top, 1);
        const Tensor<B> squares = sum(square(x / scale), axes, keep), zero = squares == 0;
        return where(zero, 0, sqrt(where(zero, 1, squares))) * reshape(scale, squares.shape());
      }
    }
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Statistic& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Statistic& op, Ins in, Outs out);

/// Integers give float_result; f16 and bf16 are added up in f32. The mean of nothing is a ShapeError.
template <class B>
Tensor<B> mean(const Tensor<B>& x, const Shape& axes = {}, KeepDim keep = KeepDim::no) {
  return eval(op::Statistic{op::StatisticFn::mean, axes, keep == KeepDim::yes}, x);
}
/// Divides by count - correction: 1 (default) is the sample variance, 0 the population variance.
template <class B>
Tensor<B> var(const Tensor<B>& x, const Shape& axes = {}, KeepDim keep = KeepDim::no, double correction = 1) {
  return eval(op::Statistic{op::StatisticFn::var, axes, keep == KeepDim::yes, correction}, x);
}
/// log(sum(exp(x))), without overflow.
template <class B>
Tensor<B> logsumexp(const Tensor<B>& x, const Shape& axes = {}, KeepDim keep = KeepDim::no) {
  return eval(op::Statistic{op::StatisticFn::logsumexp, axes, keep == KeepDim::yes}, x);
}
/// Vector norm of order 1, 2 (default) or infinity.
template <class B>
Tensor<B> norm(const Tensor<B>& x, double order = 2, const Shape& axes = {}, KeepDim keep = KeepDim::no) {
  return eval(op::Statistic{op::StatisticFn::norm, axes, keep == KeepDim::yes, order}, x);
}

// One axis by its number: mean(x, 1).
template <class B, AxisNumber Axis>
Tensor<B> mean(const Tensor<B>& x, Axis axis, KeepDim keep = KeepDim::no) {
  return mean(x, Shape{axis}, keep);
}
template <class B, AxisNumber Axis>
Tensor<B> var(const Tensor<B>& x, Axis axis, KeepDim keep = KeepDim::no, double correction = 1) {
  return var(x, Shape{axis}, keep, correction);
}
template <class B, AxisNumber Axis>
Tensor<B> logsumexp(const Tensor<B>& x, Axis axis, KeepDim keep = KeepDim::no) {
  return logsumexp(x, Shape{axis}, keep);
}
template <class B, AxisNumber Axis>
Tensor<B> norm(const Tensor<B>& x, double order, Axis axis, KeepDim keep = KeepDim::no) {
  return norm(x, order, Shape{axis}, keep);
}

}  // namespace ferrite
