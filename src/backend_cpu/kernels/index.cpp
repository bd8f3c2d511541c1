// gather, scatter and scatter_add. Indices are checked in a pass of their own, so that the loops that follow
// cannot fail half-way; lines along the indexed axis are independent and shared out among the threads.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/gather.hpp"
#include "ferrite/ops/scatter.hpp"
#include "ferrite/ops/scatter_add.hpp"

namespace ferrite {
namespace cpu {
namespace {

void copy(Cpu& backend, const Array& from, const Array& to) {
  const Array* in[] = {&from};
  Array out = to;
  run(backend, op::Copy{to.dtype()}, Ins(in, 1), Outs(&out, 1));
}

[[noreturn]] void throw_out_of_range(std::string_view name, std::int64_t value, std::int64_t position,
                                     const Shape& shape, int axis, std::int64_t length) {
  Shape place = shape;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    place[i] = position % shape[i];
    position /= shape[i];
  }
  throw ValueError(fmt::format("[{}] index {} at {} is out of range for axis {} of length {}", name, value,
                               to_string(place), axis, length));
}

/// The index as i64, every element in [-length, length). Along broadcast axes it is neither copied nor
/// checked twice.
Array checked_index(Cpu& backend, std::string_view name, const Array& given, int axis, std::int64_t length) {
  Layout once = given.layout();
  for (int i = 0; i < once.shape.rank(); ++i) {
    if (once.strides[i] == 0 && once.shape[i] > 1) once.shape[i] = 1;
  }
  Array index = given.with_layout(once);
  if (given.dtype() != DType::i64 || !once.is_contiguous()) {
    const Array dense = backend.allocate({once.shape, DType::i64});
    copy(backend, index, dense);
    index = dense;
  }
  const auto* values = index.data<std::int64_t>();
  const auto is_bad = [=](std::int64_t i) { return (values[i] < -length) | (values[i] >= length); };
  const std::int64_t n = once.shape.numel();
  std::atomic<bool> any{false};
  parallel_ranges(n, chunk_size, [&](std::int64_t begin, std::int64_t end) {
    bool bad = false;
    for (std::int64_t i = begin; i < end; ++i) bad |= is_bad(i);
    if (bad) any.store(true, std::memory_order_relaxed);
  });
  if (any) {
    std::int64_t first = 0;
    while (!is_bad(first)) ++first;
    throw_out_of_range(name, values[first], first, once.shape, axis, length);
  }
  return index.with_layout(index.layout().expand(given.shape()));
}

/// The layout cut to the index's shape, with the indexed axis (where the index decides) left out.
Layout lines_of(const Layout& layout, const Shape& index, int axis) {
  Layout lines = layout;
  for (int i = 0; i < index.rank(); ++i) lines.shape[i] = i == axis ? 1 : index[i];
  return lines;
}

/// Calls f(offsets, count) for every innermost line of a box; offsets has one entry per operand.
template <class F>
void for_each_line(const BoxWalk& walk, F&& f) {
  const Box& box = walk.box();
  const LoopNest& nest = walk.nest();
  std::int64_t offset[LoopNest::max_operands], index[max_rank] = {};
  for (int k = 0; k < nest.operands; ++k) offset[k] = walk.offset(k);
  for (int axis = 0; axis >= 0;) {
    f(offset, box.extent[box.rank - 1]);
    for (axis = box.rank - 2; axis >= 0; --axis) {
      const bool more = ++index[axis] < box.extent[axis];
      for (int k = 0; k < nest.operands; ++k)
        offset[k] += more ? nest.stride[k][axis] : -(box.extent[axis] - 1) * nest.stride[k][axis];
      if (more) break;
      index[axis] = 0;
    }
  }
}

template <class E>
void gather(const Array& x, const Array& index, const Array& out, int axis) {
  Layout source = x.layout();
  source.shape = index.shape();
  source.strides[axis] = 0;  // the index says where
  const Layout* layouts[] = {&out.layout(), &index.layout(), &source};
  const BoxWalk all{LoopNest(layouts)};
  const int inner = all.nest().rank - 1;
  const std::int64_t step = x.layout().strides[axis], length = x.shape()[axis];
  const std::int64_t out_step = all.nest().stride[0][inner], index_step = all.nest().stride[1][inner],
                     x_step = all.nest().stride[2][inner];
  parallel_ranges(all.count(), all.boxes_per_chunk(), [&](std::int64_t begin, std::int64_t end) {
    BoxWalk walk = all;
    walk.seek(begin);
    for (std::int64_t i = begin; i < end; ++i, walk.next()) {
      for_each_line(walk, [&](const std::int64_t* offset, std::int64_t n) {
        E* y = out.data<E>() + offset[0];
        const auto* at = index.data<std::int64_t>() + offset[1];
        const E* from = x.data<E>() + offset[2];
        const auto start = [=](std::int64_t chosen) {
          return (chosen < 0 ? chosen + length : chosen) * step;
        };
        if (index_step == 0 && x_step == 1 && out_step == 1) {
          std::copy_n(from + start(*at), n, y);
        } else {
          for (std::int64_t j = 0; j < n; ++j) y[j * out_step] = from[start(at[j * index_step]) + j * x_step];
        }
      });
    }
  });
}

/// Calls combine(element of out, element of source) for every index, in index order along the axis.
template <class E, class Combine>
void scatter(const Array& out, const Array& index, const Array& source, int axis, Combine combine) {
  const std::int64_t count = index.shape()[axis], length = out.shape()[axis];
  const std::int64_t step = out.layout().strides[axis], index_step = index.layout().strides[axis],
                     source_step = source.layout().strides[axis];
  const Layout lines[] = {lines_of(out.layout(), index.shape(), axis),
                          lines_of(index.layout(), index.shape(), axis),
                          lines_of(source.layout(), index.shape(), axis)};
  const Layout* layouts[] = {&lines[0], &lines[1], &lines[2]};
  const LoopNest nest(layouts);
  const int inner = nest.rank - 1;
  const std::int64_t width = nest.extent[inner];
  // Neighbouring lines are taken together, in strips that give every thread its share.
  constexpr std::int64_t enough_tasks = 32;
  const std::int64_t strip = std::clamp<std::int64_t>(nest.numel() / enough_tasks, 16, block_size);
  const std::int64_t strips = (width - 1) / strip + 1;
  const bool whole_rows =
      nest.stride[0][inner] == 1 && nest.stride[1][inner] == 0 && nest.stride[2][inner] == 1;
  const bool along_axis = std::abs(index_step) < std::abs(nest.stride[1][inner]);
  const std::int64_t grain =
      std::max<std::int64_t>(chunk_size / (std::min(strip, width) * std::max<std::int64_t>(count, 1)), 1);
  parallel_ranges(nest.outer() * strips, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t first = task % strips * strip, n = std::min(strip, width - first);
      std::int64_t offset[3], row = task / strips;
      for (int k = 0; k < 3; ++k) offset[k] = first * nest.stride[k][inner];
      for (int i = inner - 1; i >= 0; row /= nest.extent[i--]) {
        for (int k = 0; k < 3; ++k) offset[k] += row % nest.extent[i] * nest.stride[k][i];
      }
      E* y = out.data<E>() + offset[0];
      const auto* at = index.data<std::int64_t>() + offset[1];
      const E* x = source.data<E>() + offset[2];
      const auto line_at = [=](std::int64_t given) {
        return y + (given < 0 ? given + length : given) * step;
      };
      const auto visit = [&](std::int64_t k, std::int64_t j) {
        combine(line_at(at[k * index_step + j * nest.stride[1][inner]])[j * nest.stride[0][inner]],
                x[k * source_step + j * nest.stride[2][inner]]);
      };
      if (whole_rows) {
        for (std::int64_t k = 0; k < count; ++k) {
          E* line = line_at(at[k * index_step]);
          for (std::int64_t j = 0; j < n; ++j) combine(line[j], x[k * source_step + j]);
        }
      } else if (along_axis) {
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t k = 0; k < count; ++k) visit(k, j);
      } else {
        for (std::int64_t k = 0; k < count; ++k)
          for (std::int64_t j = 0; j < n; ++j) visit(k, j);
      }
    }
  });
}

}  // namespace
}  // namespace cpu

void run(Cpu& cpu, const op::Gather& op, Ins in, Outs out) {
  const int axis = normalize_axis(op::Gather::type_name, op.axis, in[0].shape().rank());
  if (out[0].shape().numel() == 0) return;
  const Array index = cpu::checked_index(cpu, "gather", in[1], axis, in[0].shape()[axis]);
  cpu::visit_size(size_of(out[0].dtype()), [&]<class E>() { cpu::gather<E>(in[0], index, out[0], axis); });
}

void run(Cpu& cpu, const op::Scatter& op, Ins in, Outs out) {
  const int axis = normalize_axis(op::Scatter::type_name, op.axis, in[0].shape().rank());
  const Array index = cpu::checked_index(cpu, "scatter", in[1], axis, in[0].shape()[axis]);
  cpu::copy(cpu, in[0], out[0]);
  if (index.shape().numel() == 0) return;
  cpu::visit_size(size_of(out[0].dtype()),
                  [&]<class E>() { cpu::scatter<E>(out[0], index, in[2], axis, [](E& y, E x) { y = x; }); });
}

void run(Cpu& cpu, const op::ScatterAdd& op, Ins in, Outs out) {
  const int axis = normalize_axis(op::ScatterAdd::type_name, op.axis, in[0].shape().rank());
  const Array index = cpu::checked_index(cpu, "scatter_add", in[1], axis, in[0].shape()[axis]);
  // 16-bit floats are added up in f32 and rounded once.
  const DType dtype = out[0].dtype();
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  const Array sums = narrow ? cpu.allocate({out[0].shape(), DType::f32}) : out[0];
  Array source = in[2];
  if (narrow) {
    source = cpu.allocate({in[2].shape(), DType::f32});
    cpu::copy(cpu, in[2], source);
  }
  cpu::copy(cpu, in[0], sums);
  if (index.shape().numel() > 0) {
    visit_dtype(sums.dtype(), [&]<class T>() {
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        // Integers wrap around, which only unsigned ones may.
        using E = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                              std::type_identity<T>>::type;
        cpu::scatter<E>(sums, index, source, axis, [](E& y, E x) { y = static_cast<E>(y + x); });
      }
    });
  }
  if (narrow) cpu::copy(cpu, sums, out[0]);
}

}  // namespace ferrite
