// reduce: sum, prod, max, min, any, all over any set of axes. Deterministic: the order of additions depends
// on the shape alone. f16 and bf16 accumulate in f32, f32 in f32 (pairwise or wider), integers in i64.
#pragma once

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/where.hpp"

namespace ferrite {

/// Whether reduced axes stay, with extent 1.
enum class KeepDim : bool { no, yes };

namespace op {

enum class ReduceFn : std::uint8_t { sum, prod, max, min, any, all };

FERRITE_API std::string_view to_string(ReduceFn fn);
constexpr int count_of(ReduceFn) { return static_cast<int>(ReduceFn::all) + 1; }

/// Empty `axes` means all. sum and prod of nothing are 0 and 1; max and min of nothing are a ShapeError. max
/// and min return NaN if any element is NaN; their gradient goes to the elements that equal the result, in
/// equal shares, and to those that are NaN if it is.
struct FERRITE_API Reduce {
  static constexpr LibraryName type_name = "reduce";
  ReduceFn fn = ReduceFn::sum;
  Shape axes;
  bool keepdim = false;
  std::optional<DType> at_least = {};  // the dtype of a sum of floats

  std::string_view name() const { return to_string(fn); }
  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("axes", self.axes);
    visit("keepdim", self.keepdim);
    visit("at_least", self.at_least);
  }
  Saves saves() const;
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// `shape` with the given (normalised) axes set to 1 or removed.
FERRITE_API Shape reduced_shape(const Shape& shape, const Shape& axes, bool keepdim);
/// The number of elements that go into one result.
FERRITE_API std::int64_t reduced_count(const Shape& shape, const Shape& axes);

}  // namespace op

// Kernels (backend/concept.hpp).
/// Accumulates sums only; another function with a mask is a BackendError.
FERRITE_API void run(Cpu&, const op::Reduce& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Reduce& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

#define FERRITE_REDUCE(fn)                                                               \
  template <class B>                                                                     \
  Tensor<B> fn(const Tensor<B>& x, const Shape& axes = {}, KeepDim keep = KeepDim::no) { \
    return eval(op::Reduce{op::ReduceFn::fn, axes, keep == KeepDim::yes}, x);            \
  }
FERRITE_REDUCE(sum)
FERRITE_REDUCE(prod)
FERRITE_REDUCE(max)
FERRITE_REDUCE(min)
FERRITE_REDUCE(any)
FERRITE_REDUCE(all)
#undef FERRITE_REDUCE

/// Sums over the axes along which `shape` was broadcast: the transpose of expand.
template <class B>
Tensor<B> sum_to(const Tensor<B>& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Shape axes;
  const int lead = x.rank() - shape.rank();
  for (int i = 0; i < x.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && x.shape()[i] != 1)) axes.push_back(i);
  return reshape(axes.empty() ? x : sum(x, axes, KeepDim::yes), shape);
}

namespace op {

template <class B>
void Reduce::vjp(Vjp<B>& v) const {
  const Shape& shape = v.input_meta(0).shape;
  const Shape kept = reduced_shape(shape, normalize_axes(name(), axes, shape.rank()), true);
  switch (fn) {
    case ReduceFn::sum:
      return v.add(0, expand(reshape(v.grad(), kept), shape));
    case ReduceFn::max:
    case ReduceFn::min: {
      const Tensor<B> x = v.input(0), dy = reshape(v.wide_grad(), kept);
      const Tensor<B> hit = logical_or(x == reshape(v.output(0), kept), isnan(x));
      const Tensor<B> share = cast(dy / cast(sum(hit, axes, KeepDim::yes), dy.dtype()), v.grad().dtype());
      return v.into(0, Where{ScalarSide::right, 0}, hit, expand(share, shape));
    }
    case ReduceFn::prod: {  // the product of the others, also correct where elements are zero
      const Tensor<B> x = v.wide_input(0), dy = reshape(v.wide_grad(), kept);
      const Tensor<B> is_zero = x == 0;
      const Tensor<B> zeros_here = sum(is_zero, axes, KeepDim::yes);
      const Tensor<B> safe = where(is_zero, 1, x);
      const Tensor<B> others = prod(safe, axes, KeepDim::yes);
      const Tensor<B> at_zero = where(zeros_here == 1, others, 0);
      const Tensor<B> elsewhere = where(zeros_here == 0, others, 0) / safe;
      return v.add(0, dy * where(is_zero, at_zero, elsewhere));
    }
    default:
      return;
  }
}

}  // namespace op

// One axis by its number: sum(x, 1).
#define FERRITE_REDUCE_AXIS(fn)                                             \
  template <class B, AxisNumber Axis>                                       \
  Tensor<B> fn(const Tensor<B>& x, Axis axis, KeepDim keep = KeepDim::no) { \
    return fn(x, Shape{axis}, keep);                                        \
  }
FERRITE_REDUCE_AXIS(sum)
FERRITE_REDUCE_AXIS(prod)
FERRITE_REDUCE_AXIS(max)
FERRITE_REDUCE_AXIS(min)
FERRITE_REDUCE_AXIS(any)
FERRITE_REDUCE_AXIS(all)
#undef FERRITE_REDUCE_AXIS

}  // namespace ferrite
