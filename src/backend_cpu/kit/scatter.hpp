// The loops of scatter and scatter_add: lines along the indexed axis are independent and shared out among the
// threads.
#pragma once

#include <algorithm>

#include "backend_cpu/kit/checked_index.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/cpu/blocks.hpp"

namespace ferrite::cpu {

/// The layout cut to the index's shape, with the indexed axis (where the index decides) left out.
inline Layout lines_of(const Layout& layout, const Shape& index, int axis) {
  Layout lines = layout;
  for (int i = 0; i < index.rank(); ++i) lines.shape[i] = i == axis ? 1 : index[i];
  return lines;
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

}  // namespace ferrite::cpu
