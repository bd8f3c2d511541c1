// Chooses paths and cuts, with the numbers behind the choice.
#include "backend_cuda/kit/reduction.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {
namespace {

/// Enough blocks to keep an H200 busy to the end: four times the 1056 that are resident at once.
constexpr std::int64_t enough_blocks = 4096;
/// Runs shorter than this do not get their own threads if the reduction has other axes.
constexpr std::int64_t short_run = 32;

int floor_log2(std::int64_t n) { return std::bit_width(static_cast<std::uint64_t>(n)) - 1; }
int ceil_log2(std::int64_t n) { return n <= 1 ? 0 : floor_log2(n - 1) + 1; }
constexpr int block_shift = std::bit_width(static_cast<unsigned>(block_threads)) - 1;

using Axis = AxisReduction::Axis;

/// Sorts and merges axes of one kind.
void collapse(SmallVector<Axis, 8>& axes) {
  const auto outer = [](const Axis& a, const Axis& b) {
    return (a.in == 0 && b.in != 0) || (b.in != 0 && std::abs(a.in) > std::abs(b.in));
  };
  std::sort(axes.begin(), axes.end(), outer);
  std::size_t count = 0;
  for (const Axis& axis : axes) {
    if (count > 0 && axes[count - 1].in == axis.in * axis.extent &&
        axes[count - 1].out == axis.out * axis.extent) {
      axes[count - 1] = {axes[count - 1].extent * axis.extent, axis.in, axis.out};
    } else {
      axes[count++] = axis;
    }
  }
  axes.resize(count);
  if (axes.empty()) axes.push_back({});
}

Array shifted(const Array& x, std::int64_t offset) {
  Layout layout = x.layout();
  layout.offset += offset;
  return x.with_layout(layout);
}

/// Input and output offsets from flipping the axes of negative stride: neighbours are then found however an
/// array is transposed.
struct Flips {
  std::int64_t in = 0, out = 0;
  Axis flipped(const Axis& axis) {
    if (axis.in >= 0) return axis;
    in += (axis.extent - 1) * axis.in;
    out += (axis.extent - 1) * axis.out;
    return {axis.extent, -axis.in, -axis.out};
  }
};

}  // namespace

AxisReduction::AxisReduction(const Array& given, const Array& result, const Shape& axes, bool keepdim,
                             ElementOrder order) {
  const Layout& layout = given.layout();
  Flips flips;
  int from = 0;
  for (int i = 0; i < layout.shape.rank(); ++i) {
    const bool reduces = std::find(axes.begin(), axes.end(), i) != axes.end();
    Axis axis{layout.shape[i], layout.strides[i], reduces ? 0 : result.layout().strides[from]};
    if (!reduces || keepdim) ++from;
    (reduces ? length : results) *= axis.extent;
    if (axis.extent == 1) continue;
    if (!reduces || order == ElementOrder::ignored) axis = flips.flipped(axis);
    (reduces ? reduced : kept).push_back(axis);
  }
  in = shifted(given, flips.in);
  out = shifted(result, flips.out);
  collapse(kept);
  collapse(reduced);
  const Axis &run = reduced[reduced.size() - 1], &across = kept[kept.size() - 1];
  if (across.in == 0)
    by_rows = true;
  else if (run.in == 0 || std::abs(run.in) > across.in)
    by_rows = false;
  else
    by_rows = reduced.size() == 1 || run.extent >= short_run;
}

bool AxisReduction::allows_packs(int lanes) const {
  const Axis &run = reduced[reduced.size() - 1], &across = kept[kept.size() - 1];
  const Axis& packed = by_rows ? run : across;
  const auto bytes = static_cast<std::uintptr_t>(lanes) * size_of(in.dtype());
  bool fits =
      packed.in == 1 && packed.extent >= lanes && reinterpret_cast<std::uintptr_t>(in.data()) % bytes == 0;
  // A row may end in the middle of a pack if no other run follows it.
  if (!by_rows || reduced.size() > 1) fits = fits && packed.extent % lanes == 0;
  for (const auto* axes : {&kept, &reduced})
    for (const Axis& axis : *axes) fits = fits && (&axis == &packed || axis.in % lanes == 0);
  return fits;
}

Axes<2> AxisReduction::kept_axes() const {
  Axes<2> result;
  for (const Axis& axis : kept) result.push_back(axis.extent, std::array{axis.in, axis.out});
  return result;
}

Axes<1> AxisReduction::reduced_axes(int lanes) const {
  Axes<1> result;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    const std::int64_t width = i + 1 < reduced.size() ? 1 : lanes;
    result.push_back(divide_up(reduced[i].extent, width), std::array{reduced[i].in * width});
  }
  return result;
}

RowsCut::RowsCut(const AxisReduction& reduction, int lanes)
    : packs(reduction.length / lanes), tail(static_cast<int>(reduction.length % lanes)) {
  // A thread with four packs in flight has enough to do; for long rows, eight halve the merging.
  const std::int64_t groups = packs < 256 ? packs / 4 : packs / 8;
  group_shift = std::min(floor_log2(std::max<std::int64_t>(groups, 1)), block_shift);
  constexpr std::int64_t smallest_part = 8 * block_threads;
  std::int64_t wanted = 1;
  if (packs >= 4 * smallest_part) wanted = std::min(enough_blocks / reduction.results, packs / smallest_part);
  per_part = divide_up(packs, std::max<std::int64_t>(wanted, 1));
  parts = static_cast<int>(divide_up(packs, per_part));
  blocks = divide_up(reduction.results << group_shift, block_threads) * parts;
}

ColumnsCut::ColumnsCut(const AxisReduction& reduction, int lanes) : units(reduction.results / lanes) {
  constexpr int widest = 6;  // 64 packs of 16 bytes: 1 KiB of each row
  constexpr std::int64_t enough_units = 1024 * block_threads;
  const std::int64_t across = reduction.kept[reduction.kept.size() - 1].extent / lanes;
  // As many threads down the columns as find four elements each, but rows are read in whole stretches.
  const int down = floor_log2(std::max<std::int64_t>(reduction.length / 4, 1));
  tile_shift = std::clamp(block_shift - down, std::min(widest, ceil_log2(across)), block_shift);
  if (units >= enough_units) tile_shift = block_shift;
  tiles = divide_up(units, std::int64_t{1} << tile_shift);
  const std::int64_t smallest_part = 8 * (block_threads >> tile_shift);
  const std::int64_t wanted = std::min(enough_blocks / tiles, reduction.length / smallest_part);
  per_part = divide_up(reduction.length, std::max<std::int64_t>(wanted, 1));
  parts = static_cast<int>(divide_up(reduction.length, per_part));
  blocks = tiles * parts;
}

int merge_shift(int parts) { return std::min(ceil_log2(divide_up(parts, 8)), block_shift); }

}  // namespace ferrite::cuda
