// pad: room before, after and between the elements of each axis. Also the transpose of a slice.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/views.hpp"

namespace ferrite {
namespace op {

/// # Shapes: extent n -> low + n + (n - 1) interior + high on every axis (lists as long as the rank).
struct FERRITE_API Pad {
  static constexpr LibraryName type_name = "pad";
  Shape low;
  Shape high;
  Shape interior;
  Scalar value = 0;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) {
    low = high = interior = {0, 0};
    return detail::alike(1, {2, 3}, d);
  }
  static void attributes(auto& self, auto&& visit) {
    visit("low", self.low);
    visit("high", self.high);
    visit("interior", self.interior);
    visit("value", self.value);
  }
  /// Where x lies in the padded layout.
  Layout inner(const Layout& padded, const Shape& shape) const;

  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    detail::run_kernel(b, Fill{out[0].shape(), out[0].dtype(), value}, Ins(nullptr, 0), out);
    Array target = out[0].with_layout(inner(out[0].layout(), in[0].shape()));
    detail::run_kernel(b, Copy{target.dtype()}, in, Outs(&target, 1));
  }
  template <class B>
  void vjp(Vjp<B>& v) const {
    Tensor<B> dx = v.grad();
    const Shape& shape = v.input_meta(0).shape;
    for (int i = 0; i < shape.rank(); ++i)
      dx = eval(Slice{i, shape[i] > 0 ? low[i] : 0, shape[i], interior[i] + 1}, dx);
    v.add(0, dx);
  }
};

template <class B>
void Slice::vjp(Vjp<B>& v) const {
  if (v.add_to_view(0, *this, v.grad())) return;
  const Shape& shape = v.input_meta(0).shape;
  const int a = normalize_axis(type_name, axis, shape.rank());
  Tensor<B> dy = v.grad();
  std::int64_t first = start;
  const std::int64_t stride = step < 0 ? -step : step;
  if (step < 0 && count > 0) {
    dy = eval(Slice{a, count - 1, count, -1}, dy);
    first = start + (count - 1) * step;
  }
  Pad pad{Shape::filled(shape.rank(), 0), Shape::filled(shape.rank(), 0), Shape::filled(shape.rank(), 0), 0};
  if (count == 0) {
    pad.low[a] = shape[a];
  } else {
    pad.low[a] = first;
    pad.interior[a] = stride - 1;
    pad.high[a] = shape[a] - first - (count - 1) * stride - 1;
  }
  v.into(0, pad, dy);
}

template <class B>
void Windows::vjp(Vjp<B>& v) const {
  const Shape& shape = v.input_meta(0).shape;
  const int a = normalize_axis(type_name, axis, shape.rank());
  v.into(0, Fold{a, shape[a], step, dilation}, v.grad());
}

template <class B>
void Fold::assemble(B& b, Ins in, Outs out) const {
  // Sums of 16-bit elements are rounded once.
  const bool narrow = size_of(out[0].dtype()) == 2;
  Array sums = narrow ? b.allocate({out[0].shape(), DType::f32}) : out[0];
  detail::run_kernel(b, Fill{sums.shape(), sums.dtype(), 0}, Ins(nullptr, 0), Outs(&sums, 1));
  const Layout& x = in[0].layout();
  const int a = normalize_axis(type_name, axis, x.shape.rank() - 1);
  const int last = x.shape.rank() - 1;
  for (std::int64_t k = 0; k < x.shape[last]; ++k) {
    Shape shape = x.shape;
    shape.erase(last);
    const Array part = in[0].with_layout(*x.slice(last, k, 1, 1).reshape(shape));
    Array target = sums.with_layout(sums.layout().slice(a, k * dilation, x.shape[a], step));
    const Array* operands[] = {&target, &part};
    detail::run_kernel(b, Binary{BinaryFn::add}, Ins(operands, 2), Outs(&target, 1));
  }
  const Array* source[] = {&sums};
  if (narrow) detail::run_kernel(b, Copy{out[0].dtype()}, Ins(source, 1), out);
}

}  // namespace op

/// `low[i]` elements of `value` before and `high[i]` after axis i.
template <class B>
Tensor<B> pad(const Tensor<B>& x, const Shape& low, const Shape& high, Scalar value = 0) {
  return eval(op::Pad{low, high, Shape::filled(x.rank(), 0), value}, x);
}

}  // namespace ferrite
