// The fourteen primitives, each as the loop of its definition. Inputs become vectors (values.hpp), the loop
// runs over them, the results are written out.
#include "ferrite/backend/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend_cpu/kit/host_array.hpp"
#include "backend_cpu/math/scalar_functions.hpp"
#include "backend_cpu/reference/values.hpp"
#include "ferrite/backend/concept.hpp"
#include "ferrite/backend/evaluate.hpp"
#include "ops/index_rules.hpp"

namespace ferrite {

using namespace reference;
using formulas::Standard;
static_assert(check_backend<Reference>());

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// The same elements with `axes` (normalised) last, so that each group along them is a row.
Array axes_last(const Array& x, const Shape& axes) {
  Shape order;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i);
  }
  for (const std::int64_t axis : axes) order.push_back(axis);
  return x.with_layout(x.layout().permute(order));
}

Array converted(Reference& backend, const Array& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Array y = backend.allocate({x.shape(), dtype});
  const Array* in[] = {&x};
  run(backend, op::Copy{dtype}, Ins(in, 1), Outs(&y, 1));
  return y;
}

Array broadcast_to(const Array& x, const Shape& shape) { return x.with_layout(x.layout().expand(shape)); }

/// The two operands of a Binary or Where: the scalar as an array on its side, the others from `in[next]` on;
/// converted to `dtype` and broadcast to `shape`.
struct Operands {
  Array left, right;

  template <class Op>
  Operands(Reference& backend, const Op& op, Scalar scalar, Ins in, std::size_t next, DType dtype,
           const Shape& shape) {
    const auto take = [&](op::ScalarSide side) {
      if (op.side != side) return broadcast_to(converted(backend, in[next++], dtype), shape);
      Array value = backend.allocate({{}, dtype});
      run(backend, op::Fill{{}, dtype, scalar}, Ins(nullptr, 0), Outs(&value, 1));
      return broadcast_to(value, shape);
    };
    left = take(op::ScalarSide::left);
    right = take(op::ScalarSide::right);
  }
};

}  // namespace

Array Reference::allocate(const Meta& meta, std::string_view op) { return allocate_on_host(meta, op); }

void Reference::copy_from_host(const Array& target, const void* source) {
  if (!target.layout().is_contiguous()) {
    throw ShapeError(fmt::format("[copy_from_host] array of shape {} and strides {}: must be contiguous",
                                 to_string(target.shape()), to_string(target.layout().strides)));
  }
  if (const std::size_t bytes = target.meta().bytes()) std::memcpy(target.data(), source, bytes);
}

void Reference::copy_to_host(const Array& source, void* target) {
  const Array dense = detail::contiguous(*this, source);
  if (const std::size_t bytes = dense.meta().bytes()) std::memcpy(target, dense.data(), bytes);
}

MemoryStats Reference::memory_stats() const { return host_allocator().stats(); }

void run(Reference&, const op::Fill& op, Ins, Outs out) {
  visit_any_dtype(out[0].dtype(), [&]<class T>() {
    T* data = out[0].data<T>();
    for_each_offset(out[0].layout(), [&](std::int64_t at) { data[at] = op.value.to<T>(); });
  });
}

void run(Reference&, const op::Iota& op, Ins, Outs out) {
  visit_wide(out[0].dtype(), [&]<class Wide>() {
    const auto start = op.start.to<Wide>(), step = op.step.to<Wide>();
    std::vector<Wide> y(size(op.count));
    for (std::int64_t i = 0; i < op.count; ++i) {
      y[size(i)] = scalar::multiply_then_add(static_cast<Wide>(i), step, start);
    }
    write_values(out[0], y);
  });
}

void run(Reference&, const op::Random& op, Ins, Outs out) {
  const RandomKey key{op.seed, op.stream};
  const auto low = convert<std::int64_t>(op.low), high = convert<std::int64_t>(op.high);
  const auto element = [&]<class T>(std::uint64_t i) {
    using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;
    switch (op.fn) {
      case op::RandomFn::uniform:
        return scalar::uniform_between<T>(op.low, op.high, uniform_at<T>(key, i));
      case op::RandomFn::normal:
        return convert<T>(scalar::multiply_then_add(op.high, normal_at<Computed>(key, i), op.low));
      case op::RandomFn::bernoulli:
        return convert<T>(bernoulli_at(key, i, static_cast<float>(op.low)));
      default:
        return convert<T>(integer_at(key, i, low, high));
    }
  };
  visit_dtype(out[0].dtype(), [&]<class T>() {
    T* data = out[0].data<T>();
    std::uint64_t i = 0;
    for_each_offset(out[0].layout(),
                    [&](std::int64_t at) { data[at] = element.template operator()<T>(i++); });
  });
}

void run(Reference&, const op::Copy&, Ins in, Outs out) {
  visit_wide(in[0].dtype(), [&]<class Wide>() { write_values(out[0], read_values<Wide>(in[0])); });
}

void run(Reference&, const op::Unary& op, Ins in, Outs out) {
  // Real functions of integers have float results; all others are computed in the input's kind.
  visit_wide(is_floating(out[0].dtype()) ? out[0].dtype() : in[0].dtype(), [&]<class Wide>() {
    std::vector<Wide> x = read_values<Wide>(in[0]);
    for (Wide& v : x) v = formulas::unary(Standard<Wide>{}, op.fn, v, convert<Wide>(op.alpha));
    write_values(out[0], x);
  });
}

void run(Reference& reference, const op::Binary& op, Ins in, Outs out) {
  const DType dtype = op.operand_dtype(detail::metas_of(in));
  const Operands operands(reference, op, op.operand(dtype), in, 0, dtype, out[0].shape());
  visit_wide(dtype, [&]<class Wide>() {
    std::vector<Wide> a = read_values<Wide>(operands.left);
    const std::vector<Wide> b = read_values<Wide>(operands.right);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = formulas::binary(Standard<Wide>{}, op.fn, a[i], b[i]);
    write_values(out[0], a);
  });
}

void run(Reference& reference, const op::Where& op, Ins in, Outs out) {
  const std::vector<std::int64_t> condition = read_values<std::int64_t>(broadcast_to(in[0], out[0].shape()));
  const Operands operands(reference, op, op.scalar, in, 1, out[0].dtype(), out[0].shape());
  visit_wide(out[0].dtype(), [&]<class Wide>() {
    std::vector<Wide> y = read_values<Wide>(operands.left);
    const std::vector<Wide> otherwise = read_values<Wide>(operands.right);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (!condition[i]) y[i] = otherwise[i];
    }
    write_values(out[0], y);
  });
}

namespace {

/// Every reduction folds a binary function over its elements, starting from the neutral value.
template <class Wide>
struct Fold {
  op::BinaryFn fn;
  Wide start;
};
template <class Wide>
Fold<Wide> fold_of(op::ReduceFn fn) {
  using Limits = std::numeric_limits<Wide>;
  constexpr Wide highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  constexpr Wide lowest = Limits::has_infinity ? -Limits::infinity() : Limits::min();
  switch (fn) {
    case op::ReduceFn::sum:
      return {op::BinaryFn::add, 0};
    case op::ReduceFn::prod:
      return {op::BinaryFn::mul, 1};
    case op::ReduceFn::max:
      return {op::BinaryFn::maximum, lowest};
    case op::ReduceFn::min:
      return {op::BinaryFn::minimum, highest};
    case op::ReduceFn::any:
      return {op::BinaryFn::logical_or, 0};
    default:
      return {op::BinaryFn::logical_and, 1};
  }
}

}  // namespace

void run(Reference&, const op::Reduce& op, Ins in, Outs out) {
  const Shape axes = normalize_axes(op.name(), op.axes, in[0].shape().rank());
  const std::int64_t rows = out[0].shape().numel();
  const std::int64_t length = rows == 0 ? 0 : in[0].shape().numel() / rows;
  visit_wide(in[0].dtype(), [&]<class Wide>() {
    const std::vector<Wide> x = read_values<Wide>(axes_last(in[0], axes));
    const Fold<Wide> fold = fold_of<Wide>(op.fn);
    std::vector<Wide> y(size(rows), fold.start);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < length; ++i) {
        y[size(row)] = formulas::binary(Standard<Wide>{}, fold.fn, y[size(row)], x[size(row * length + i)]);
      }
    }
    write_values(out[0], y);
  });
}

void run(Reference&, const op::ArgReduce& op, Ins in, Outs out) {
  const int axis = normalize_axis(op.name(), op.axis, in[0].shape().rank());
  const std::int64_t rows = out[0].shape().numel(), length = in[0].shape()[axis];
  visit_wide(in[0].dtype(), [&]<class Wide>() {
    const std::vector<Wide> x = read_values<Wide>(axes_last(in[0], {axis}));
    const auto beats = [&](Wide a, Wide b) {
      if (b != b) return false;  // the first NaN stays
      return a != a || (op.fn == op::ArgReduceFn::argmax ? a > b : a < b);
    };
    std::vector<std::int64_t> y(size(rows), 0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 1; i < length; ++i) {
        if (beats(x[size(row * length + i)], x[size(row * length + y[size(row)])])) y[size(row)] = i;
      }
    }
    write_values(out[0], y);
  });
}

void run(Reference&, const op::Scan& op, Ins in, Outs out) {
  const int axis = normalize_axis(op.name(), op.axis, in[0].shape().rank());
  const auto rows_of = [&](const Array& x) {  // read from the far end, a reversed scan is a plain one
    const Array rows = axes_last(x, {axis});
    return op.reverse ? rows.with_layout(rows.layout().flip(-1)) : rows;
  };
  const std::size_t length = size(in[0].shape()[axis]);
  visit_wide(in[0].dtype(), [&]<class Wide>() {
    std::vector<Wide> x = read_values<Wide>(rows_of(in[0]));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i % length != 0) x[i] = Standard<Wide>{}.add(x[i - 1], x[i]);
    }
    write_values(rows_of(out[0]), x);
  });
}

void run(Reference&, const op::Matmul&, Ins in, Outs out) {
  const Shape& shape = out[0].shape();
  const int row_axis = shape.rank() - 2, column_axis = shape.rank() - 1;
  const std::int64_t rows = shape[row_axis], columns = shape[column_axis], inner = in[0].shape().back();
  Shape lhs_shape = shape, rhs_shape = shape;
  lhs_shape[column_axis] = inner;
  rhs_shape[row_axis] = inner;
  visit_wide(out[0].dtype(), [&]<class Wide>() {
    const std::vector<Wide> a = read_values<Wide>(broadcast_to(in[0], lhs_shape));
    const std::vector<Wide> b = read_values<Wide>(broadcast_to(in[1], rhs_shape));
    const Standard<Wide> m;
    std::vector<Wide> y(size(shape.numel()), 0);
    const std::int64_t batches = rows * columns == 0 ? 0 : shape.numel() / (rows * columns);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t k = 0; k < inner; ++k) {  // outside the columns, so that memory is read in order
          const Wide factor = a[size((batch * rows + i) * inner + k)];
          for (std::int64_t j = 0; j < columns; ++j) {
            Wide& sum = y[size((batch * rows + i) * columns + j)];
            sum = m.add(sum, m.mul(factor, b[size((batch * inner + k) * columns + j)]));
          }
        }
      }
    }
    write_values(out[0], y);
  });
}

namespace {

/// The part of `x` that an index of this shape reaches: cut to the index's extents on the axes other than
/// `axis`, which comes last.
Array rows_reached(const Array& x, const Shape& index, int axis) {
  Layout layout = x.layout();
  for (int i = 0; i < index.rank(); ++i) {
    if (i != axis) layout = layout.slice(i, 0, index[i], 1);
  }
  return axes_last(x.with_layout(layout), {axis});
}

/// Indices in rows along `axis`, checked, and counted from the start where they were negative.
std::vector<std::int64_t> read_indices(std::string_view name, const Array& index, int axis,
                                       std::int64_t length) {
  const std::vector<std::int64_t> given = read_values<std::int64_t>(index);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] < -length || given[i] >= length) {
      op::throw_out_of_range(name, given[i], static_cast<std::int64_t>(i), index.shape(), axis, length);
    }
  }
  std::vector<std::int64_t> indices = read_values<std::int64_t>(axes_last(index, {axis}));
  for (std::int64_t& i : indices) i += i < 0 ? length : 0;
  return indices;
}

/// A copy of x (in[0]) where each element named by the index (in[1]) is combined with its source (in[2]), in
/// row-major order of the index.
template <class Combine>
void scatter_with(std::string_view name, int given_axis, Ins in, const Array& out, Combine combine) {
  const int axis = normalize_axis(name, given_axis, out.shape().rank());
  const Shape& shape = in[1].shape();
  const std::int64_t length = out.shape()[axis], count = shape[axis];
  const std::vector<std::int64_t> indices = read_indices(name, in[1], axis, length);
  visit_wide(out.dtype(), [&]<class Wide>() {
    const Array source = in[2].with_layout(in[2].layout().slice(axis, 0, count, 1));
    const std::vector<Wide> updates = read_values<Wide>(rows_reached(source, shape, axis));
    write_values(out, read_values<Wide>(in[0]));
    const Array reached = rows_reached(out, shape, axis);
    std::vector<Wide> y = read_values<Wide>(reached);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      Wide& element = y[i / size(count) * size(length) + size(indices[i])];
      element = combine(element, updates[i]);
    }
    write_values(reached, y);
  });
}

}  // namespace

void run(Reference&, const op::Gather& op, Ins in, Outs out) {
  const int axis = normalize_axis("gather", op.axis, in[0].shape().rank());
  const Shape& shape = in[1].shape();
  const std::int64_t length = in[0].shape()[axis], count = shape[axis];
  const std::vector<std::int64_t> indices = read_indices("gather", in[1], axis, length);
  visit_wide(in[0].dtype(), [&]<class Wide>() {
    const std::vector<Wide> x = read_values<Wide>(rows_reached(in[0], shape, axis));
    std::vector<Wide> y(indices.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i / size(count) * size(length) + size(indices[i])];
    write_values(axes_last(out[0], {axis}), y);
  });
}

void run(Reference&, const op::Scatter& op, Ins in, Outs out) {
  scatter_with("scatter", op.axis, in, out[0], [](auto, auto update) { return update; });
}

void run(Reference&, const op::ScatterAdd& op, Ins in, Outs out) {
  scatter_with("scatter_add", op.axis, in, out[0],
               [](auto old, auto update) { return Standard<decltype(old)>{}.add(old, update); });
}

}  // namespace ferrite
