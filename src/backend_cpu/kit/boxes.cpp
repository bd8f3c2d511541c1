// Copies between layouts, one box at a time.
#include "backend_cpu/kit/boxes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ferrite::cpu {
namespace {

template <class E>
void copy_line(const E* source, std::int64_t step, E* target, std::int64_t target_step, std::int64_t n) {
  if (target_step == 1 && step == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(n) * sizeof(E));
  } else if (target_step == 1 && step == 0) {
    std::fill_n(target, n, *source);
  } else if (target_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) target[i] = source[i * step];
  } else {
    for (std::int64_t i = 0; i < n; ++i) target[i * target_step] = source[i * step];
  }
}

struct Line {
  std::int64_t extent, source, target;  // strides
};

/// Two loops, with the longer one inside if the other is very short.
template <class E>
void copy_plane(const E* source, E* target, Line rows, Line columns) {
  constexpr std::int64_t is_short = 8;
  if (columns.extent < is_short && rows.extent >= is_short) std::swap(rows, columns);
  for (std::int64_t i = 0; i < rows.extent; ++i)
    copy_line(source + i * rows.source, columns.source, target + i * rows.target, columns.target,
              columns.extent);
}

template <class E>
void copy_axes(const Box& box, int axis, const E* source, const std::int64_t* source_stride, E* target,
               const std::int64_t* target_stride) {
  const auto line = [&](int i) { return Line{box.extent[i], source_stride[i], target_stride[i]}; };
  if (axis == box.rank - 1) return copy_plane(source, target, {1, 0, 0}, line(axis));
  if (axis == box.rank - 2) return copy_plane(source, target, line(axis), line(axis + 1));
  for (std::int64_t i = 0; i < box.extent[axis]; ++i)
    copy_axes(box, axis + 1, source + i * source_stride[axis], source_stride,
              target + i * target_stride[axis], target_stride);
}

struct DenseStrides {
  std::int64_t stride[max_rank];
  explicit DenseStrides(const Box& box) {
    std::int64_t step = 1;
    for (int i = box.rank - 1; i >= 0; --i) {
      stride[i] = step;
      step *= box.extent[i];
    }
  }
};

}  // namespace

void copy_box(std::size_t element_size, const Box& box, const void* source, const std::int64_t* source_stride,
              void* target, const std::int64_t* target_stride) {
  visit_size(element_size, [&]<class E>() {
    copy_axes(box, 0, static_cast<const E*>(source), source_stride, static_cast<E*>(target), target_stride);
  });
}

void gather_box(std::size_t element_size, const Box& box, const void* source, const std::int64_t* stride,
                void* block) {
  copy_box(element_size, box, source, stride, block, DenseStrides(box).stride);
}

void scatter_box(std::size_t element_size, const Box& box, const void* block, void* target,
                 const std::int64_t* stride) {
  copy_box(element_size, box, block, DenseStrides(box).stride, target, stride);
}

const void* load_box(const Box& box, DType dtype, const void* source, const std::int64_t* stride,
                     DType wanted, BlockBuffer& buffer, BlockBuffer& scratch) {
  if (!box.is_dense(stride)) {
    std::byte* gathered = dtype == wanted ? buffer.bytes : scratch.bytes;
    gather_box(size_of(dtype), box, source, stride, gathered);
    source = gathered;
  }
  if (dtype == wanted) return source;
  convert_block(dtype, source, wanted, buffer.bytes, box.numel());
  return buffer.bytes;
}

void store_box(const Box& box, DType given, const void* block, DType dtype, void* target,
               const std::int64_t* stride, BlockBuffer& scratch) {
  if (box.is_dense(stride)) return convert_block(given, block, dtype, target, box.numel());
  if (given != dtype) {
    convert_block(given, block, dtype, scratch.bytes, box.numel());
    block = scratch.bytes;
  }
  scatter_box(size_of(dtype), box, block, target, stride);
}

BoxWalk::BoxWalk(const LoopNest& nest) : nest_(nest) {
  choose_tile();
  box_.rank = nest_.rank;
  // A tile is narrow and long: an operand along the other axis is then read as a few streams, which
  // prefetching can follow. Other boxes take whole rows, and several of them if rows are short.
  constexpr std::int64_t tile_width = 16, enough = block_size / 4;
  std::int64_t size = 1;
  for (int i = nest_.rank - 1; i >= 0; --i) {
    const bool innermost = i == nest_.rank - 1;
    const std::int64_t room = innermost && tiled_ ? tile_width : size < enough ? block_size / size : 1;
    full_[i] = std::clamp<std::int64_t>(nest_.extent[i], 1, room);
    size *= full_[i];
    count_ *= (nest_.extent[i] + full_[i] - 1) / full_[i];
  }
  seek(0);
}

/// If an operand has a smaller stride along another axis than along the innermost one, that axis becomes the
/// second to last.
void BoxWalk::choose_tile() {
  constexpr std::int64_t worth = 8;  // shorter axes are read whole anyway
  const int inner = nest_.rank - 1;
  if (nest_.rank < 2 || nest_.extent[inner] < worth) return;
  for (int k = 0; k < nest_.operands; ++k) {
    const std::int64_t* stride = nest_.stride[k];
    int best = inner;
    for (int i = 0; i < inner; ++i) {
      if (nest_.extent[i] >= worth && stride[i] != 0 && std::abs(stride[i]) < std::abs(stride[best]))
        best = i;
    }
    if (best == inner) continue;
    const int second = inner - 1;
    std::swap(nest_.extent[best], nest_.extent[second]);
    for (int m = 0; m < nest_.operands; ++m) std::swap(nest_.stride[m][best], nest_.stride[m][second]);
    tiled_ = true;
    return;
  }
}

std::int64_t BoxWalk::boxes_per_chunk() const {
  std::int64_t size = 1;
  for (int i = 0; i < nest_.rank; ++i) size *= full_[i];
  return std::max<std::int64_t>(chunk_size / size, 1);
}

void BoxWalk::clip(int axis) { box_.extent[axis] = std::min(full_[axis], nest_.extent[axis] - begin_[axis]); }

void BoxWalk::seek(std::int64_t index) {
  for (int i = nest_.rank - 1; i >= 0; --i) {
    const std::int64_t boxes = (nest_.extent[i] + full_[i] - 1) / full_[i];
    begin_[i] = boxes > 0 ? index % boxes * full_[i] : 0;
    index = boxes > 0 ? index / boxes : 0;
    clip(i);
  }
}

void BoxWalk::next() {
  for (int i = nest_.rank - 1; i >= 0; --i) {
    begin_[i] += full_[i];
    const bool inside = begin_[i] < nest_.extent[i];
    if (!inside) begin_[i] = 0;
    clip(i);
    if (inside) return;
  }
}

std::int64_t BoxWalk::offset(int k) const {
  std::int64_t at = 0;
  for (int i = 0; i < nest_.rank; ++i) at += begin_[i] * nest_.stride[k][i];
  return at;
}

}  // namespace ferrite::cpu
