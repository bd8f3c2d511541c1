// conv2d and its two gradients as products of the weight, the patches and the output, one block of output
// pixels at a time.
#include "ferrite/ops/conv2d.hpp"

#include "backend_cpu/gemm/gemm.hpp"
#include "backend_cpu/kit/conv_patches.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Work, in multiplications, that is worth a thread.
constexpr std::int64_t chunk_work = 1 << 17;
/// Pieces of work to aim for where the images alone give fewer.
constexpr std::int64_t wanted_chunks = 16;

/// Patches of some channels as a matrix [channels kh kw, columns]: a part of x where they are just that.
template <class T>
Matrix<const T> patch_matrix(const ConvExtents& e, const PixelBlock& block, const T* x, std::int64_t channel,
                             std::int64_t channels, T* scratch) {
  if (e.is_pointwise() && block.images == 1) {
    const std::int64_t image_stride = e.groups * e.channels * e.pixels();
    return {x + block.image * image_stride + channel * e.pixels() + block.row * e.width, channels,
            block.columns(e), e.pixels()};
  }
  gather_patches(e, block, x, channel, channels, scratch);
  return {scratch, channels * e.taps(), block.columns(e)};
}

/// The block's part of a dense y, for one group, as a matrix [outputs, columns].
template <class T>
Matrix<const T> output_matrix(const ConvExtents& e, const PixelBlock& block, const T* y, T* scratch) {
  const std::int64_t pixels = e.out_pixels(), image_stride = e.groups * e.outputs * pixels;
  y += block.image * image_stride;
  if (block.images == 1) return {y + block.row * e.out_width, e.outputs, block.columns(e), pixels};
  for (std::int64_t o = 0; o < e.outputs; ++o) {
    for (std::int64_t n = 0; n < block.images; ++n)
      std::copy_n(y + n * image_stride + o * pixels, pixels, scratch + (o * block.images + n) * pixels);
  }
  return {scratch, e.outputs, block.columns(e)};
}

template <class T>
void convolve(const ConvExtents& e, const T* x, const T* weight, const T* bias, T* y) {
  const PixelBlocks blocks(e);
  const std::int64_t row_blocks = blocks.row_blocks(e), most_columns = blocks.most_columns(e);
  const std::int64_t count = blocks.image_blocks(e) * e.groups * row_blocks;
  const std::int64_t work = e.outputs * e.patch() * most_columns + 1;
  parallel_ranges(count, chunk_work / work, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> scratch((e.patch() + e.outputs) * most_columns);
    T* gathered = scratch.data() + e.patch() * most_columns;
    for (std::int64_t index = begin; index < end; ++index) {
      const PixelBlock block = blocks.at(e, index / row_blocks / e.groups, index % row_blocks);
      const std::int64_t group = index / row_blocks % e.groups, columns = block.columns(e);
      const std::int64_t pixels = e.out_pixels(), image_stride = e.groups * e.outputs * pixels;
      T* target = y + block.image * image_stride + group * e.outputs * pixels + block.row * e.out_width;
      const bool direct = block.images == 1;
      T* sums = direct ? target : gathered;
      const std::int64_t stride = direct ? pixels : columns;
      for (std::int64_t o = 0; o < e.outputs; ++o)
        std::fill_n(sums + o * stride, columns, bias ? bias[group * e.outputs + o] : T{0});
      const Matrix<const T> kernel(weight + group * e.outputs * e.patch(), e.outputs, e.patch());
      gemm<T>(T{1}, kernel,
              patch_matrix(e, block, x + group * e.channels * e.pixels(), 0, e.channels, scratch.data()),
              Matrix<T>(sums, e.outputs, columns, stride), true);
      for (std::int64_t n = 0; !direct && n < block.images; ++n) {
        for (std::int64_t o = 0; o < e.outputs; ++o)
          std::copy_n(gathered + (o * block.images + n) * pixels, pixels,
                      target + n * image_stride + o * pixels);
      }
    }
  });
}

/// dx (+)= the weight transposed times dy, every patch element added to its pixel.
template <class T>
void input_gradient(const ConvExtents& e, const T* dy, const T* weight, T* dx, bool add) {
  const PixelBlocks blocks(e);
  const std::int64_t image_blocks = blocks.image_blocks(e), row_blocks = blocks.row_blocks(e);
  const std::int64_t most_columns = blocks.most_columns(e);
  // Patches of neighbouring rows overlap, those of different channels do not.
  const std::int64_t channel_parts =
      std::clamp<std::int64_t>(wanted_chunks / std::max<std::int64_t>(image_blocks * e.groups, 1), 1,
                               std::max<std::int64_t>(e.patch() / 64, 1));
  const std::int64_t part_channels = (e.channels - 1) / channel_parts + 1;
  const std::int64_t count = image_blocks * e.groups * channel_parts;
  const std::int64_t work = e.outputs * part_channels * e.taps() * most_columns * row_blocks + 1;
  parallel_ranges(count, chunk_work / work, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> scratch((part_channels * e.taps() + e.outputs) * most_columns);
    T* gathered = scratch.data() + part_channels * e.taps() * most_columns;
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t group = index / channel_parts % e.groups;
      const std::int64_t channel = std::min(e.channels, index % channel_parts * part_channels);
      const std::int64_t channels = std::min(part_channels, e.channels - channel), rows = channels * e.taps();
      const std::int64_t image_stride = e.groups * e.channels * e.pixels();
      T* target = dx + group * e.channels * e.pixels();
      for (std::int64_t r = 0; r < row_blocks; ++r) {
        const PixelBlock block = blocks.at(e, index / channel_parts / e.groups, r);
        const std::int64_t columns = block.columns(e);
        const Matrix<const T> kernel(weight + (group * e.outputs * e.channels + channel) * e.taps(),
                                     e.outputs, rows, e.patch());
        const Matrix<const T> grad =
            output_matrix(e, block, dy + group * e.outputs * e.out_pixels(), gathered);
        if (e.is_pointwise() && block.images == 1) {
          T* const pixel = target + block.image * image_stride + channel * e.pixels() + block.row * e.width;
          gemm<T>(T{1}, kernel.transposed(), grad, Matrix<T>(pixel, rows, columns, e.pixels()), add);
          continue;
        }
        for (std::int64_t n = 0; r == 0 && !add && n < block.images; ++n)
          std::fill_n(target + (block.image + n) * image_stride + channel * e.pixels(), channels * e.pixels(),
                      T{0});
        gemm<T>(T{1}, kernel.transposed(), grad, Matrix<T>(scratch.data(), rows, columns), false);
        scatter_patches(e, block, scratch.data(), channel, channels, target);
      }
    }
  });
}

/// dweight (+)= dy times the patches transposed. The pixels are cut into segments whose sums are added up in
/// order; many channels give enough parallel work without.
template <class T>
void weight_gradient(const ConvExtents& e, const T* dy, const T* x, T* dweight, bool add) {
  const PixelBlocks blocks(e);
  const std::int64_t row_blocks = blocks.row_blocks(e), most_columns = blocks.most_columns(e);
  const std::int64_t units = blocks.image_blocks(e) * row_blocks;
  const std::int64_t size = e.groups * e.outputs * e.patch();
  const std::int64_t channel_parts = std::clamp<std::int64_t>(e.patch() / 256, 1, wanted_chunks);
  const std::int64_t part_channels = (e.channels - 1) / channel_parts + 1;
  const std::int64_t work = units * most_columns * e.outputs * part_channels * e.taps();
  const std::int64_t segments =
      std::clamp<std::int64_t>(std::min(wanted_chunks / (e.groups * channel_parts), work / chunk_work), 1,
                               std::max<std::int64_t>(units, 1));
  const Scratch<T> sums(segments > 1 ? segments * size : 0);
  const std::int64_t count = segments * e.groups * channel_parts;
  parallel_ranges(count, chunk_work / (work / segments + 1), [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> scratch((part_channels * e.taps() + e.outputs) * most_columns);
    T* gathered = scratch.data() + part_channels * e.taps() * most_columns;
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t segment = index / channel_parts / e.groups, group = index / channel_parts % e.groups;
      const std::int64_t channel = std::min(e.channels, index % channel_parts * part_channels);
      const std::int64_t channels = std::min(part_channels, e.channels - channel);
      T* target = segments > 1 ? sums.data() + segment * size : dweight;
      target += (group * e.outputs * e.channels + channel) * e.taps();
      bool started = add && segments == 1;
      const std::int64_t first = segment * units / segments, last = (segment + 1) * units / segments;
      for (std::int64_t unit = first; unit < last; ++unit, started = true) {
        const PixelBlock block = blocks.at(e, unit / row_blocks, unit % row_blocks);
        const Matrix<const T> grad =
            output_matrix(e, block, dy + group * e.outputs * e.out_pixels(), gathered);
        const Matrix<const T> patches =
            patch_matrix(e, block, x + group * e.channels * e.pixels(), channel, channels, scratch.data());
        gemm<T>(T{1}, grad, patches.transposed(),
                Matrix<T>(target, e.outputs, channels * e.taps(), e.patch()), started);
      }
    }
  });
  if (units == 0 && !add) std::fill_n(dweight, size, T{0});
  if (segments == 1) return;
  parallel_ranges(size, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    if (!add) std::fill(dweight + begin, dweight + end, T{0});
    for (std::int64_t segment = 0; segment < segments; ++segment) {
      const T* part = sums.data() + segment * size;
      for (std::int64_t i = begin; i < end; ++i) dweight[i] += part[i];
    }
  });
}

}  // namespace

bool accepts(const Cpu&, const op::Conv2d&, MetaSpan in) { return all_f32_or_f64(in); }
bool accepts(const Cpu&, const op::Conv2dInputGrad&, MetaSpan in) { return all_f32_or_f64(in); }
bool accepts(const Cpu&, const op::Conv2dWeightGrad& op, MetaSpan in) {
  return all_f32_or_f64(in) && (!op.at_least || size_of(*op.at_least) <= size_of(in[0].dtype));
}

void run(Cpu& cpu, const op::Conv2d& op, Ins in, Outs out) {
  const Array x = dense(cpu, in[0]), weight = dense(cpu, in[1]);
  const Array bias = in.size() > 2 ? dense(cpu, in[2]) : Array();
  Destination y(cpu, out[0], false);
  visit_wide(x.dtype(), [&]<class T>() {
    convolve(ConvExtents(op.geometry, x.shape(), weight.shape(), out[0].shape()), x.data<const T>(),
             weight.data<const T>(), bias.defined() ? bias.data<const T>() : nullptr, y.array().data<T>());
  });
  y.commit();
}

void run(Cpu& cpu, const op::Conv2dInputGrad& op, Ins in, Outs out, Accumulate mask) {
  const Array dy = dense(cpu, in[0]), weight = dense(cpu, in[1]);
  Destination dx(cpu, out[0], accumulates(mask, 0));
  visit_wide(dy.dtype(), [&]<class T>() {
    input_gradient(ConvExtents(op.geometry, op.input, weight.shape(), dy.shape()), dy.data<const T>(),
                   weight.data<const T>(), dx.array().data<T>(), dx.add());
  });
  dx.commit();
}

void run(Cpu& cpu, const op::Conv2dWeightGrad& op, Ins in, Outs out, Accumulate mask) {
  const Array dy = dense(cpu, in[0]), x = dense(cpu, in[1]);
  Destination dweight(cpu, out[0], accumulates(mask, 0));
  visit_wide(dy.dtype(), [&]<class T>() {
    weight_gradient(ConvExtents(op.geometry, x.shape(), op.weight, dy.shape()), dy.data<const T>(),
                    x.data<const T>(), dweight.array().data<T>(), dweight.add());
  });
  dweight.commit();
}

}  // namespace ferrite
