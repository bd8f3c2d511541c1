// Turns a convolution into matrix products: the input under each output pixel as a column (im2col), some
// columns at a time, and the reverse.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ops/conv2d.hpp"

namespace ferrite::cpu {

/// Extents of one convolution. x [N, C, H, W], weight [O, C/G, kh, kw], y [N, O, Ho, Wo], all dense.
struct ConvExtents {
  std::int64_t images, groups;
  std::int64_t channels, outputs;  // of one group
  std::int64_t height, width, kernel_height, kernel_width, out_height, out_width;
  Shape stride, padding, dilation;

  ConvExtents(const op::ConvGeometry& geometry, const Shape& x, const Shape& weight, const Shape& y)
      : images(x[0]),
        groups(geometry.groups),
        channels(weight[1]),
        outputs(weight[0] / geometry.groups),
        height(x[2]),
        width(x[3]),
        kernel_height(weight[2]),
        kernel_width(weight[3]),
        out_height(y[2]),
        out_width(y[3]),
        stride(geometry.stride),
        padding(geometry.padding),
        dilation(geometry.dilation) {}

  std::int64_t taps() const { return kernel_height * kernel_width; }
  std::int64_t patch() const { return channels * taps(); }
  std::int64_t pixels() const { return height * width; }
  std::int64_t out_pixels() const { return out_height * out_width; }
  /// The patches are the input itself.
  bool is_pointwise() const { return taps() == 1 && stride == Shape{1, 1} && padding == Shape{0, 0}; }
};

/// Some output pixels: rows [row, row + rows) of images [image, image + images), which are all rows if there
/// are several images. As columns of a matrix they go image by image.
struct PixelBlock {
  std::int64_t image, images, row, rows;

  std::int64_t columns(const ConvExtents& e) const { return images * rows * e.out_width; }
};

/// Cuts the output into blocks that give gemm enough columns to be fast, and no more than the cache holds:
/// several small images, or some rows of a large one.
struct PixelBlocks {
  std::int64_t images, rows;  // per block, the last ones may have less

  explicit PixelBlocks(const ConvExtents& e) {
    constexpr std::int64_t least_columns = 128, cache_elements = 1 << 16;
    const std::int64_t columns =
        std::max(least_columns, cache_elements / std::max<std::int64_t>(e.patch(), 1));
    images = std::clamp<std::int64_t>(least_columns / e.out_pixels(), 1, std::max<std::int64_t>(e.images, 1));
    rows = std::clamp<std::int64_t>(columns / e.out_width, 1, e.out_height);
    if (images > 1) rows = e.out_height;
    // Equal blocks instead of a small one at the end.
    const std::int64_t parts = (e.out_height - 1) / rows + 1;
    rows = (e.out_height - 1) / parts + 1;
  }

  std::int64_t image_blocks(const ConvExtents& e) const { return (e.images + images - 1) / images; }
  std::int64_t row_blocks(const ConvExtents& e) const { return (e.out_height + rows - 1) / rows; }
  std::int64_t most_columns(const ConvExtents& e) const { return images * rows * e.out_width; }
  PixelBlock at(const ConvExtents& e, std::int64_t image_block, std::int64_t row_block) const {
    const std::int64_t image = image_block * images, row = row_block * rows;
    return {image, std::min(images, e.images - image), row, std::min(rows, e.out_height - row)};
  }
};

/// Calls f(column, x offset, count) for the runs of patch element (i, j) that lie inside the input: `count`
/// output pixels from `column` on, whose inputs start at the offset within the channel and are stride[1]
/// apart.
template <class F>
void for_each_run(const ConvExtents& e, std::int64_t row, std::int64_t rows, std::int64_t i, std::int64_t j,
                  F&& f) {
  const std::int64_t left = j * e.dilation[1] - e.padding[1];  // input column of output column 0
  const std::int64_t begin = left >= 0 ? 0 : (-left - 1) / e.stride[1] + 1;
  const std::int64_t room = e.width - left;
  const std::int64_t end = room <= 0 ? 0 : std::min(e.out_width, (room - 1) / e.stride[1] + 1);
  if (begin >= end) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t y = (row + r) * e.stride[0] + i * e.dilation[0] - e.padding[0];
    if (y < 0 || y >= e.height) continue;
    f(r * e.out_width + begin, y * e.width + left + begin * e.stride[1], end - begin);
  }
}

/// Copies a run. Most are too short for a call of memcpy to pay.
template <class T>
void copy_run(const T* in, std::int64_t step, T* out, std::int64_t count) {
  constexpr std::int64_t wide = 4;
  std::int64_t k = 0;
  if (step == 1) {
    for (; k + wide <= count; k += wide) std::memcpy(out + k, in + k, wide * sizeof(T));
  }
  for (; k < count; ++k) out[k] = in[k * step];
}

/// The patches of channels [channel, channel + channels) of one group as columns: patches [channels kh kw,
/// columns]. x is the first element of that group in image 0.
template <class T>
void gather_patches(const ConvExtents& e, const PixelBlock& block, const T* x, std::int64_t channel,
                    std::int64_t channels, T* patches) {
  const std::int64_t image_columns = block.rows * e.out_width, columns = block.columns(e);
  const std::int64_t image_stride = e.groups * e.channels * e.pixels(), step = e.stride[1];
  const bool padded = e.padding[0] > 0 || e.padding[1] > 0;
  for (std::int64_t c = channel; c < channel + channels; ++c) {
    for (std::int64_t i = 0; i < e.kernel_height; ++i) {
      for (std::int64_t j = 0; j < e.kernel_width; ++j, patches += columns) {
        if (padded) std::fill_n(patches, columns, T{0});
        for (std::int64_t n = 0; n < block.images; ++n) {
          const T* source = x + (block.image + n) * image_stride + c * e.pixels();
          T* target = patches + n * image_columns;
          for_each_run(e, block.row, block.rows, i, j,
                       [&](std::int64_t column, std::int64_t offset, std::int64_t count) {
                         copy_run(source + offset, step, target + column, count);
                       });
        }
      }
    }
  }
}

/// The transpose of gather_patches: adds every patch element to the input it came from.
template <class T>
void scatter_patches(const ConvExtents& e, const PixelBlock& block, const T* patches, std::int64_t channel,
                     std::int64_t channels, T* x) {
  const std::int64_t image_columns = block.rows * e.out_width, columns = block.columns(e);
  const std::int64_t image_stride = e.groups * e.channels * e.pixels(), step = e.stride[1];
  for (std::int64_t c = channel; c < channel + channels; ++c) {
    for (std::int64_t i = 0; i < e.kernel_height; ++i) {
      for (std::int64_t j = 0; j < e.kernel_width; ++j, patches += columns) {
        for (std::int64_t n = 0; n < block.images; ++n) {
          T* target = x + (block.image + n) * image_stride + c * e.pixels();
          const T* source = patches + n * image_columns;
          for_each_run(e, block.row, block.rows, i, j,
                       [&](std::int64_t column, std::int64_t offset, std::int64_t count) {
                         const T* in = source + column;
                         T* out = target + offset;
                         if (step == 1)
                           for_each_index(count, [=](std::int64_t k) { out[k] += in[k]; });
                         else
                           for_each_index(count, [=](std::int64_t k) { out[k * step] += in[k]; });
                       });
        }
      }
    }
  }
}

}  // namespace ferrite::cpu
