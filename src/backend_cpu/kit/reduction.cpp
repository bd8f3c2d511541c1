// Reductions over any set of axes of any layout. The output is cut into tiles and, where those are few, the
// reduction into slices whose totals are merged in order; both cuts depend on the layouts alone, never on the
// threads.
#include "backend_cpu/kit/reduction.hpp"

#include <algorithm>

#include "backend_cpu/kit/boxes.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cpu {
namespace {

/// A loop of the nest: how far one step goes in the input, the output, and the row-major order of the
/// reduction.
struct Axis {
  std::int64_t extent = 1, in = 0, out = 0, position = 0;
};
using Axes = SmallVector<Axis, 8>;

/// Rows should be read whole: prefetching stops where they are cut.
constexpr std::int64_t widest_tile = block_size;

class Reduction {
 public:
  Reduction(const Fold& fold, const Array& in, const Array& out, const Shape& axes, bool keepdim,
            bool accumulate);
  void run();

 private:
  void choose_loops();
  void cut();
  /// Where a tile starts and how wide it is.
  struct Tile {
    std::int64_t in = 0, out = 0, width = 1;
  };
  Tile tile(std::int64_t index) const;
  void fold_tile(const Tile& tile, std::int64_t slice, std::byte* totals) const;
  void fold_by_runs(const Tile& tile, const Axes& reduced, std::int64_t in, std::int64_t position,
                    std::byte* totals) const;
  void fold_by_rows(const Tile& tile, const Axes& reduced, std::int64_t in, std::int64_t position,
                    std::byte* totals) const;
  void store(const Tile& tile, const std::byte* totals) const;

  const std::byte* input(std::int64_t offset) const {
    return in_.data() + offset * static_cast<std::int64_t>(size_of(in_.dtype()));
  }

  const Fold& fold_;
  const Array& in_;
  const Array& out_;
  const bool accumulate_;
  Axes kept_, reduced_;  // by falling stride of the input
  Axis across_;          // the kept axis that tiles lie on, taken out of kept_
  bool by_rows_ = false;
  std::int64_t tile_width_ = 1, tiles_ = 1, slices_ = 1;
  std::size_t split_ = 0;  // the reduced axis that slices cut
};

Reduction::Reduction(const Fold& fold, const Array& in, const Array& out, const Shape& axes, bool keepdim,
                     bool accumulate)
    : fold_(fold), in_(in), out_(out), accumulate_(accumulate) {
  // The output with stride 0 along reduced axes, and the position in the reduction with stride 0 along the
  // others.
  const int rank = in.shape().rank();
  Layout result{in.shape(), Shape::filled(rank, 0), 0}, position = result;
  bool reduces[max_rank] = {};
  for (const std::int64_t axis : axes) reduces[axis] = true;
  int from = 0;
  for (int i = 0; i < rank; ++i) {
    if (!reduces[i]) result.strides[i] = out.layout().strides[from];
    if (!reduces[i] || keepdim) ++from;
  }
  std::int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (!reduces[i]) continue;
    position.strides[i] = step;
    step *= in.shape()[i];
  }
  const Layout* layouts[] = {&in.layout(), &result, &position};
  const LoopNest nest(layouts);
  for (int i = 0; i < nest.rank; ++i) {
    if (nest.extent[i] == 1) continue;
    const Axis axis{nest.extent[i], nest.stride[0][i], nest.stride[1][i], nest.stride[2][i]};
    (axis.position != 0 ? reduced_ : kept_).push_back(axis);
  }
  choose_loops();
  cut();
}

/// By rows: whole rows of outputs take in one element each. By runs: one output takes in a run of elements.
/// The axis with the smallest stride decides, unless it is too short for a loop.
void Reduction::choose_loops() {
  if (reduced_.empty()) reduced_.push_back({});
  if (!kept_.empty()) {
    across_ = kept_[kept_.size() - 1];
    kept_.resize(kept_.size() - 1);
  }
  const Axis& run = reduced_[reduced_.size() - 1];
  if (across_.extent == 1) return;
  if (std::abs(run.in) <= std::abs(across_.in))
    by_rows_ = run.extent < 16 && across_.extent > run.extent;
  else
    by_rows_ = across_.extent >= 8 || run.extent < 64;
}

void Reduction::cut() {
  constexpr std::int64_t enough_tasks = 32;
  std::int64_t length = 1;
  for (std::size_t i = 0; i < reduced_.size(); ++i) {
    length *= reduced_[i].extent;
    if (reduced_[i].extent > reduced_[split_].extent) split_ = i;
  }
  const std::int64_t widest = by_rows_ ? widest_tile : std::clamp<std::int64_t>(chunk_size / length, 1, 256);
  tile_width_ = std::min(across_.extent, widest);
  tiles_ = (across_.extent - 1) / tile_width_ + 1;
  for (const Axis& axis : kept_) tiles_ *= axis.extent;
  const std::int64_t wanted = (enough_tasks - 1) / tiles_ + 1;
  const std::int64_t most = tile_width_ * length / chunk_size;
  slices_ = std::clamp<std::int64_t>(std::min(wanted, most), 1, reduced_[split_].extent);
}

Reduction::Tile Reduction::tile(std::int64_t index) const {
  const std::int64_t along = (across_.extent - 1) / tile_width_ + 1;
  const std::int64_t begin = index % along * tile_width_;
  Tile tile{begin * across_.in, begin * across_.out, std::min(tile_width_, across_.extent - begin)};
  index /= along;
  for (std::size_t i = kept_.size(); i-- > 0; index /= kept_[i].extent) {
    const std::int64_t at = index % kept_[i].extent;
    tile.in += at * kept_[i].in;
    tile.out += at * kept_[i].out;
  }
  return tile;
}

/// Calls f(input offset, position) for every index of the first `count` axes.
template <class F>
void for_each(const Axis* axes, std::size_t count, std::int64_t in, std::int64_t position, F& f) {
  if (count == 0) return f(in, position);
  for (std::int64_t i = 0; i < axes->extent; ++i)
    for_each(axes + 1, count - 1, in + i * axes->in, position + i * axes->position, f);
}

void Reduction::fold_tile(const Tile& tile, std::int64_t slice, std::byte* totals) const {
  Axes reduced = reduced_;
  Axis& cut_axis = reduced[split_];
  const std::int64_t begin = slice * cut_axis.extent / slices_, end = (slice + 1) * cut_axis.extent / slices_;
  cut_axis.extent = end - begin;
  const std::int64_t in = tile.in + begin * cut_axis.in, position = begin * cut_axis.position;
  fold_.start(totals, tile.width);
  if (by_rows_)
    fold_by_rows(tile, reduced, in, position, totals);
  else
    fold_by_runs(tile, reduced, in, position, totals);
}

void Reduction::fold_by_runs(const Tile& tile, const Axes& reduced, std::int64_t in, std::int64_t position,
                             std::byte* totals) const {
  BlockBuffer buffer, scratch;
  const Axis& run = reduced[reduced.size() - 1];
  const bool direct = (run.in == 1 || run.extent == 1) && in_.dtype() == fold_.input;
  auto fold = [&](std::int64_t offset, std::int64_t first) {
    if (direct) return fold_.fold_runs(totals, tile.width, input(offset), across_.in, run.extent, first);
    for (std::int64_t i = 0; i < run.extent; i += block_size) {
      const Box box{1, {std::min(block_size, run.extent - i)}};
      for (std::int64_t j = 0; j < tile.width; ++j) {
        const std::byte* x = input(offset + j * across_.in + i * run.in);
        fold_.fold_runs(totals + static_cast<std::size_t>(j) * fold_.total_size, 1,
                        load_box(box, in_.dtype(), x, &run.in, fold_.input, buffer, scratch), 0,
                        box.extent[0], first + i * run.position);
      }
    }
  };
  for_each(reduced.begin(), reduced.size() - 1, in, position, fold);
}

void Reduction::fold_by_rows(const Tile& tile, const Axes& reduced, std::int64_t in, std::int64_t position,
                             std::byte* totals) const {
  BlockBuffer buffer, scratch;
  const Axis& down = reduced[reduced.size() - 1];
  const bool direct = (across_.in == 1 || tile.width == 1) && in_.dtype() == fold_.input;
  const std::int64_t rows = block_size / tile.width;
  const std::int64_t stride[] = {down.in, across_.in};
  auto fold = [&](std::int64_t offset, std::int64_t first) {
    if (direct) return fold_.fold_rows(totals, input(offset), down.in, down.extent, tile.width, first);
    for (std::int64_t i = 0; i < down.extent; i += rows) {
      const Box box{2, {std::min(rows, down.extent - i), tile.width}};
      const void* x =
          load_box(box, in_.dtype(), input(offset + i * down.in), stride, fold_.input, buffer, scratch);
      fold_.fold_rows(totals, x, tile.width, box.extent[0], tile.width, first + i * down.position);
    }
  };
  for_each(reduced.begin(), reduced.size() - 1, in, position, fold);
}

void Reduction::store(const Tile& tile, const std::byte* totals) const {
  BlockBuffer values, old, scratch;
  fold_.results(totals, values.bytes, tile.width);
  const Box box{1, {tile.width}};
  std::byte* target = out_.data() + tile.out * static_cast<std::int64_t>(size_of(out_.dtype()));
  if (accumulate_) {
    const void* before = load_box(box, out_.dtype(), target, &across_.out, fold_.result, old, scratch);
    add_block(fold_.result, before, values.bytes, tile.width);
  }
  store_box(box, fold_.result, values.bytes, out_.dtype(), target, &across_.out, scratch);
}

void Reduction::run() {
  struct alignas(64) Totals {
    std::byte bytes[widest_tile * max_total_size];
  };
  std::int64_t work = tile_width_;
  for (const Axis& axis : reduced_) work *= axis.extent;
  const std::int64_t grain =
      std::max<std::int64_t>(chunk_size / std::max<std::int64_t>(work / slices_, 1), 1);
  if (slices_ == 1) {
    return parallel_ranges(tiles_, grain, [&](std::int64_t begin, std::int64_t end) {
      Totals totals;
      for (std::int64_t i = begin; i < end; ++i) {
        fold_tile(tile(i), 0, totals.bytes);
        store(tile(i), totals.bytes);
      }
    });
  }
  const std::size_t tile_bytes = static_cast<std::size_t>(tile_width_) * fold_.total_size;
  const auto partial = host_allocator().allocate(static_cast<std::size_t>(tiles_ * slices_) * tile_bytes);
  const auto totals_of = [&](std::int64_t i, std::int64_t slice) {
    return static_cast<std::byte*>(partial->data()) +
           static_cast<std::size_t>(i * slices_ + slice) * tile_bytes;
  };
  parallel_for(tiles_ * slices_, [&](std::int64_t task) {
    fold_tile(tile(task / slices_), task % slices_, totals_of(task / slices_, task % slices_));
  });
  parallel_ranges(tiles_, std::max<std::int64_t>(chunk_size / (tile_width_ * slices_), 1),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const Tile t = tile(i);
                      for (std::int64_t slice = 1; slice < slices_; ++slice)
                        fold_.merge(totals_of(i, 0), totals_of(i, slice), t.width);
                      store(t, totals_of(i, 0));
                    }
                  });
}

}  // namespace

void reduce_axes(const Fold& fold, const Array& in, const Array& out, const Shape& axes, bool keepdim,
                 bool accumulate) {
  Reduction(fold, in, out, axes, keepdim, accumulate).run();
}

}  // namespace ferrite::cpu
