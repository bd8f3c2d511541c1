// Shared by all attention kernels: where heads lie, the mask, and which keys a query sees with what score.
#pragma once

#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda::attention {

constexpr float hidden = -std::numeric_limits<float>::infinity();

/// [B, H, rows, columns] of any strides, in elements.
template <class T>
struct Heads {
  T* data;
  std::int64_t batch, head, row, column;

  template <class A>
  static Heads of(const A& x) {
    const auto& strides = x.layout().strides;
    return {x.template data<std::remove_const_t<T>>(), strides[0], strides[1], strides[2], strides[3]};
  }
  __device__ T* at(std::int64_t b, std::int64_t h) const { return data + b * batch + h * head; }
};

/// A bool mask keeps; the others are added.
enum class MaskKind : std::uint8_t { none, keeps, f32, f16, bf16 };
struct Mask {
  const void* data = nullptr;
  MaskKind kind = MaskKind::none;
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

/// Positions [first, last).
struct Range {
  std::int64_t first, last;

  __device__ bool holds(std::int64_t from, std::int64_t to) const { return first <= from && to <= last; }
};

/// The row of scores of one query, or the column of one key: the counterparts [first, last) that see each
/// other, and where the mask of counterpart 0 lies.
struct Line {
  int first, last;
  std::int64_t mask, mask_step;
};

/// Query t stands at position t + keys - queries among the keys.
struct Problem {
  std::int64_t heads, group;  // heads of queries, and how many of them read the same keys
  std::int64_t queries, keys;
  int depth, width;  // columns of q and k, of v and o
  bool causal;
  std::int64_t window;  // 0: none
  float scale;
  Mask mask;

  /// The keys that causality and the window let a query see.
  __device__ Range keys_of(std::int64_t query) const {
    const std::int64_t position = query + keys - queries;
    Range seen{0, keys};
    if (window > 0) seen = {position - window + 1, position + window};
    if (causal) seen.last = position + 1;
    return clamped(seen, keys);
  }
  /// The keys that at least one of the queries [first, last) sees.
  __device__ Range keys_of(std::int64_t first, std::int64_t last) const {
    const Range low = keys_of(first), high = keys_of(last - 1);
    return {low.first, high.last};
  }
  /// The queries that see at least one of the keys [first, last).
  __device__ Range queries_of(std::int64_t first, std::int64_t last) const {
    const std::int64_t shift = queries - keys;
    Range seen{0, queries};
    if (window > 0) seen = {first - window + 1 + shift, last - 1 + window + shift};
    if (causal) seen.first = first + shift;
    return clamped(seen, queries);
  }
  /// The keys that every one of the queries [first, last) sees with the score that the product gives: none if
  /// there is a mask, or if not all of the queries exist.
  __device__ Range keys_of_all(std::int64_t first, std::int64_t last) const {
    if (mask.kind != MaskKind::none || last > queries) return {0, 0};
    const Range low = keys_of(first), high = keys_of(last - 1);
    return {::max(low.first, high.first), ::min(low.last, high.last)};
  }
  /// The queries that every one of the keys [first, last) is seen by, in the same way.
  __device__ Range queries_of_all(std::int64_t first, std::int64_t last) const {
    if (mask.kind != MaskKind::none || last > keys) return {0, 0};
    const Range low = queries_of(first, first + 1), high = queries_of(last - 1, last);
    return {::max(low.first, high.first), ::min(low.last, high.last)};
  }
  /// What a query knows of its keys.
  __device__ Line line_of_query(std::int64_t b, std::int64_t h, std::int64_t query) const {
    const Range seen = query < queries ? keys_of(query) : Range{0, 0};
    return {static_cast<int>(seen.first), static_cast<int>(seen.last),
            b * mask.batch + h * mask.head + query * mask.row, mask.column};
  }
  /// What a key knows of the queries of head h.
  __device__ Line line_of_key(std::int64_t b, std::int64_t h, std::int64_t key) const {
    const Range seen = key < keys ? queries_of(key, key + 1) : Range{0, 0};
    return {static_cast<int>(seen.first), static_cast<int>(seen.last),
            b * mask.batch + h * mask.head + key * mask.column, mask.row};
  }
  /// The score that belongs to the product of a line and its counterpart `other`.
  __device__ float score(float product, const Line& line, int other) const {
    if (other < line.first || other >= line.last) return hidden;
    const float value = product * scale;
    if (mask.kind == MaskKind::none) return value;
    const std::int64_t at = line.mask + other * line.mask_step;
    switch (mask.kind) {
      case MaskKind::keeps:
        return static_cast<const bool*>(mask.data)[at] ? value : hidden;
      case MaskKind::f16:
        return value + __half2float(static_cast<const __half*>(mask.data)[at]);
      case MaskKind::bf16:
        return value + __bfloat162float(static_cast<const __nv_bfloat16*>(mask.data)[at]);
      default:
        return value + static_cast<const float*>(mask.data)[at];
    }
  }

 private:
  __device__ static Range clamped(Range range, std::int64_t end) {
    const auto inside = [&](std::int64_t at) { return at < 0 ? 0 : at < end ? at : end; };
    return {inside(range.first), inside(range.last)};
  }
};

}  // namespace ferrite::cuda::attention
