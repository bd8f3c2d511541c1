// Masks, jumps, loops, and instructions that do not depend on the type: copies, choices, thread numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernel/cpu/block/lanes.hpp"

namespace ferrite::kernel {

namespace {

template <class T>
void copy(const Instruction& i, Lanes& l) {
  if (l.none(i)) return;
  T* __restrict out = l.at<T>(i.out);
  const T* __restrict a = l.at<T>(i.a);
  if (const std::uint8_t* lanes = l.lanes_of(i)) {
    for (int k = 0; k < l.width; ++k) out[k] = lanes[k] != 0 ? a[k] : out[k];
  } else {
    std::memcpy(out, a, static_cast<std::size_t>(l.width) * sizeof(T));
  }
}

template <class T>
void select(const Instruction& i, Lanes& l) {
  for_lanes<T, std::uint8_t, T, T>(i, l, [](std::uint8_t c, T a, T b) { return c != 0 ? a : b; });
}

/// An instruction for the size of a type.
template <class F>
Execute by_size(ScalarType type, F f) {
  switch (lane_bytes(type)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

void fill(Lanes& l, Register out, std::int32_t x) { std::fill_n(l.at<std::int32_t>(out), l.width, x); }

/// mask m = f(lane) for all lanes.
template <class F>
void make_mask(Lanes& l, int m, F f) {
  std::uint8_t* mask = l.mask(m);
  int active = 0;
  for (int k = 0; k < l.count; ++k) {
    mask[k] = f(k);
    active += mask[k];
  }
  std::fill(mask + l.count, mask + l.width, std::uint8_t{0});
  l.active[static_cast<std::size_t>(m)] = active;
}

void count_steps(const Instruction& i, Lanes& l, int rounds) {
  l.steps += rounds;
  const std::int64_t limit = l.run.options.step_limit;
  if (l.steps > limit - l.run.steps.load(std::memory_order_relaxed))
    l.fail(i, 0, fmt::format("more than {} steps: a loop that does not end?", limit));
}

/// Where begin_range keeps a range.
struct Range {
  std::int64_t *value, *left, *step;
  Range(Lanes& l, Register r)
      : value(l.at<std::int64_t>(r)), left(l.at<std::int64_t>(r + 8)), step(l.at<std::int64_t>(r + 16)) {}
  void advance(int k) {
    value[k] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(value[k]) + static_cast<std::uint64_t>(step[k]));
    left[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(left[k]) - 1);
  }
};

template <class T>
void for_round(const Instruction& i, Lanes& l) {
  Range range(l, i.a);
  T* out = l.at<T>(i.out);
  std::uint8_t* looping = l.mask(i.mask);
  make_mask(l, i.detail, [&](int k) -> std::uint8_t {
    if (looping[k] == 0 || range.left[k] == 0) return 0;
    out[k] = static_cast<T>(range.value[k]);
    range.advance(k);
    return 1;
  });
  std::copy_n(l.mask(i.detail), l.width, looping);
  const int active = l.active[static_cast<std::size_t>(i.mask)] =
      l.active[static_cast<std::size_t>(i.detail)];
  if (active == 0) l.next = static_cast<std::size_t>(i.target);
  count_steps(i, l, active);
}

template <class T>
void uniform_round(const Instruction& i, Lanes& l) {
  Range range(l, i.a);
  if (range.left[0] == 0) {
    l.next = static_cast<std::size_t>(i.target);
    return;
  }
  T* out = l.at<T>(i.out);
  const T value = static_cast<T>(range.value[0]);
  if (const std::uint8_t* lanes = l.lanes_of(i)) {
    for (int k = 0; k < l.width; ++k) out[k] = lanes[k] != 0 ? value : out[k];
  } else {
    std::fill_n(out, l.width, value);
  }
  range.advance(0);
  count_steps(i, l, l.count);
}

template <bool is_unsigned>
void make_range(const Instruction& i, Lanes& l) {
  const std::int64_t *start = l.at<std::int64_t>(i.a), *stop = l.at<std::int64_t>(i.b),
                     *by = l.at<std::int64_t>(i.c);
  Range range(l, i.out);
  const std::uint8_t* lanes = l.lanes_of(i);
  for (int k = 0; k < l.count; ++k) {
    range.value[k] = start[k];
    range.step[k] = by[k];
    range.left[k] = 0;
    if (l.none(i) || (lanes != nullptr && lanes[k] == 0)) continue;
    if (by[k] == 0) l.fail(i, k, "the step of a range is zero");
    const auto a = static_cast<std::uint64_t>(start[k]), b = static_cast<std::uint64_t>(stop[k]),
               d = static_cast<std::uint64_t>(by[k]);
    const bool up = is_unsigned || by[k] > 0;
    const bool some = is_unsigned ? a < b : up ? start[k] < stop[k] : start[k] > stop[k];
    if (some) range.left[k] = static_cast<std::int64_t>((up ? b - a - 1 : a - b - 1) / (up ? d : 0 - d) + 1);
  }
}

}  // namespace

Execute copy_instruction(ScalarType type) {
  return by_size(type, []<class T>(T) -> Execute { return copy<T>; });
}
Execute select_instruction(ScalarType type) {
  return by_size(type, []<class T>(T) -> Execute { return select<T>; });
}
Execute for_round_instruction(ScalarType variable) {
  return by_size(variable, []<class T>(T) -> Execute { return for_round<T>; });
}
Execute uniform_round_instruction(ScalarType variable) {
  return by_size(variable, []<class T>(T) -> Execute { return uniform_round<T>; });
}

namespace control {

void zero(const Instruction& i, Lanes& l) {
  for (const Cell& cell : l.program.lists[static_cast<std::size_t>(i.detail)])
    std::memset(l.at<std::byte>(cell.reg), 0, static_cast<std::size_t>(l.width) * lane_bytes(cell.type));
}
void zero_array(const Instruction& i, Lanes& l) {
  const ArraySlot& array = l.program.arrays[static_cast<std::size_t>(i.detail)];
  const std::uint8_t* lanes = l.lanes_of(i);
  if (l.none(i)) return;
  for (std::int64_t e = 0; e < array.elements; ++e) {
    for (std::size_t p = 0; p < array.part_at.size(); ++p) {
      const std::size_t size = lane_bytes(array.layout.parts[p].type);
      std::byte* reg =
          l.at<std::byte>(array.base + static_cast<Register>(e) * array.stride + array.part_at[p]);
      if (lanes == nullptr) std::memset(reg, 0, static_cast<std::size_t>(l.width) * size);
      for (int k = 0; lanes != nullptr && k < l.count; ++k)
        if (lanes[k] != 0) std::memset(reg + static_cast<std::size_t>(k) * size, 0, size);
    }
  }
}
void fill_integer(const Instruction& i, Lanes& l) { fill(l, i.out, static_cast<std::int32_t>(i.number)); }
void extent(const Instruction& i, Lanes& l) {
  fill(l, i.out, l.run.arrays[static_cast<std::size_t>(i.detail)].shape[i.number]);
}
void block_dim(const Instruction& i, Lanes& l) { fill(l, i.out, l.run.options.block_dim); }
void thread_number(const Instruction& i, Lanes& l) {
  std::int32_t* out = l.at<std::int32_t>(i.out);
  const auto first = static_cast<std::uint32_t>(l.first);
  for (int k = 0; k < l.width; ++k) out[k] = static_cast<std::int32_t>(first + static_cast<std::uint32_t>(k));
}
/// Divides for the indices of the first thread and counts on for the others.
void thread_indices(const Instruction& i, Lanes& l) {
  std::int32_t* out = l.at<std::int32_t>(i.out);
  const auto axis = static_cast<std::size_t>(i.detail);
  std::int64_t run = 1;  // threads that share an index
  for (std::size_t a = axis + 1; a < l.run.dim.size(); ++a) run *= l.run.dim[a];
  const std::int64_t extent_here = l.run.dim[axis];
  std::int64_t index = l.first / run % extent_here, left = run - l.first % run;
  for (int k = 0; k < l.count;) {
    const int n = static_cast<int>(std::min<std::int64_t>(left, l.count - k));
    if (run > 1) {
      std::fill_n(out + k, n, static_cast<std::int32_t>(index));
      k += n;
      left = run;
      index = index + 1 == extent_here ? 0 : index + 1;
      continue;
    }
    const int rest = static_cast<int>(std::min<std::int64_t>(extent_here - index, l.count - k));
    for (int j = 0; j < rest; ++j) out[k + j] = static_cast<std::int32_t>(index) + j;
    k += rest;
    index = 0;
  }
}
void logical_and(const Instruction& i, Lanes& l) {
  for_lanes<std::uint8_t, std::uint8_t, std::uint8_t>(i, l,
                                                      [](std::uint8_t a, std::uint8_t b) { return a & b; });
}
void logical_or(const Instruction& i, Lanes& l) {
  for_lanes<std::uint8_t, std::uint8_t, std::uint8_t>(i, l,
                                                      [](std::uint8_t a, std::uint8_t b) { return a | b; });
}
void equals(const Instruction& i, Lanes& l) {
  for_lanes<std::uint8_t, std::int64_t>(i, l,
                                        [n = i.number](std::int64_t a) -> std::uint8_t { return a == n; });
}
void way(const Instruction& i, Lanes& l) {
  std::int64_t* out = l.at<std::int64_t>(i.out);
  const std::int64_t* before = i.a == no_register ? nullptr : l.at<std::int64_t>(i.a);
  const std::int64_t* index = l.at<std::int64_t>(i.b);
  const std::uint8_t* lanes = l.lanes_of(i);
  for (int k = 0; k < l.count; ++k) {
    const std::int64_t at = index[k] < 0 ? index[k] + i.number : index[k];
    const bool inside = at >= 0 && at < i.number;
    if (!inside && !l.none(i) && (lanes == nullptr || lanes[k] != 0))
      l.fail(i, k,
             fmt::format("index {} is outside {}, which has {} there", index[k],
                         l.program.texts[static_cast<std::size_t>(i.detail)], i.number));
    out[k] = (before == nullptr ? 0 : before[k] * i.number) + (inside ? at : 0);
  }
}
void assertion(const Instruction& i, Lanes& l) {
  if (l.none(i)) return;
  const std::uint8_t* holds = l.at<std::uint8_t>(i.a);
  const std::uint8_t* lanes = l.lanes_of(i);
  for (int k = 0; k < l.count; ++k) {
    if (holds[k] != 0 || (lanes != nullptr && lanes[k] == 0)) continue;
    const std::string& text = l.program.texts[static_cast<std::size_t>(i.detail)];
    l.fail(i, k, text.empty() ? "assertion failed" : "assertion failed: " + text);
  }
}
void barrier(const Instruction& i, Lanes& l) {
  const std::uint8_t* lanes = l.lanes_of(i);
  if (lanes == nullptr || l.none(i)) return;
  const auto missing = std::find(lanes, lanes + l.count, 0) - lanes,
             reached = std::find(lanes, lanes + l.count, 1) - lanes;
  l.fail(i, static_cast<int>(reached),
         fmt::format("thread {} of the block does not reach this barrier", missing));
}
void set_mask(const Instruction& i, Lanes& l) {
  const std::uint8_t* lanes = i.mask < 0 ? nullptr : l.mask(i.mask);
  make_mask(l, i.detail, [=](int k) -> std::uint8_t { return lanes == nullptr ? 1 : lanes[k]; });
}
void narrow(const Instruction& i, Lanes& l) {
  const std::uint8_t* lanes = i.mask < 0 ? nullptr : l.mask(i.mask);
  const std::uint8_t* is = l.at<std::uint8_t>(i.a);
  make_mask(l, i.detail,
            [=](int k) -> std::uint8_t { return is[k] != 0 && (lanes == nullptr || lanes[k] != 0); });
}
void split(const Instruction& i, Lanes& l) {
  narrow(i, l);
  const std::uint8_t* lanes = i.mask < 0 ? nullptr : l.mask(i.mask);
  const std::uint8_t* is = l.at<std::uint8_t>(i.a);
  make_mask(l, i.target,
            [=](int k) -> std::uint8_t { return is[k] == 0 && (lanes == nullptr || lanes[k] != 0); });
}
void clear_masks(const Instruction& i, Lanes& l) {
  const std::uint8_t* lanes = l.mask(i.mask);
  for (const int m : l.program.mask_lists[static_cast<std::size_t>(i.detail)]) {
    const std::uint8_t* before = l.mask(m);
    make_mask(l, m, [=](int k) -> std::uint8_t { return before[k] != 0 && lanes[k] == 0; });
  }
}
void jump(const Instruction& i, Lanes& l) { l.next = static_cast<std::size_t>(i.target); }
void jump_if_none(const Instruction& i, Lanes& l) {
  if (l.none(i)) l.next = static_cast<std::size_t>(i.target);
}
void begin_range(const Instruction& i, Lanes& l) { make_range<false>(i, l); }
void begin_range_u64(const Instruction& i, Lanes& l) { make_range<true>(i, l); }
void while_round(const Instruction& i, Lanes& l) {
  const std::uint8_t* is = l.at<std::uint8_t>(i.a);
  const std::uint8_t* looping = l.mask(i.mask);
  make_mask(l, i.mask, [=](int k) -> std::uint8_t { return is[k] != 0 && looping[k] != 0; });
  std::copy_n(l.mask(i.mask), l.width, l.mask(i.detail));
  const int active = l.active[static_cast<std::size_t>(i.detail)] =
      l.active[static_cast<std::size_t>(i.mask)];
  if (active == 0) l.next = static_cast<std::size_t>(i.target);
  count_steps(i, l, active);
}

}  // namespace control

}  // namespace ferrite::kernel
