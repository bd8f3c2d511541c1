// Shared by the kernels of softmax_cross_entropy: the target classes of rows, padding, and the gradient of
// one row.
#pragma once

#include <bit>

#include "backend_cuda/kit/indices.cuh"
#include "backend_cuda/kit/ring.cuh"

namespace ferrite::cuda {

/// A one-dimensional array of any stride, or a single element for all.
struct Strided {
  void* data;
  std::int64_t stride;
  explicit Strided(const Array& x)
      : data(x.data()), stride(x.shape().rank() == 0 ? 0 : x.layout().strides[0]) {}

  template <class C>
  __device__ __forceinline__ C& at(std::int64_t i) const {
    return static_cast<C*>(data)[i * stride];
  }
};

struct Targets {
  Strided classes;
  DType dtype;
  std::int64_t ignore_index, count, columns;  // classes, and columns of a row: classes, then padding
  std::int64_t first_row;                     // where these rows begin among those of the call
  FaultReport report;

  Targets(const Call& call, const Array& targets, std::int64_t ignored, std::int64_t classes_count,
          std::int64_t all_columns, std::int64_t first = 0)
      : classes(targets),
        dtype(targets.dtype()),
        ignore_index(ignored),
        count(classes_count),
        columns(all_columns),
        first_row(first),
        report(call) {}

  __device__ __forceinline__ std::int64_t read(std::int64_t row) const {
    switch (dtype) {
      case DType::i64:
        return classes.at<std::int64_t>(row);
      case DType::i32:
        return classes.at<std::int32_t>(row);
      default:
        return classes.at<std::uint8_t>(row);
    }
  }
  __device__ __forceinline__ bool is_class(std::int64_t target) const {
    return target >= 0 && target < count;
  }
  __device__ __forceinline__ void report_if_wrong(std::int64_t row, std::int64_t target) const {
    if (target != ignore_index && !is_class(target)) report(target, count, first_row + row + 1);
  }
};

/// The packs of a row that are not like the others: the one with the target, and those with padding.
template <int lanes>
struct MarkedPacks {
  static_assert(std::has_single_bit(static_cast<unsigned>(lanes)));
  std::int64_t target_pack, full_packs;  // -1: no target; packs without padding, which all come first
  int target_lane, rest;                 // rest: classes in the pack after those
  bool has_padding;

  __device__ __forceinline__ MarkedPacks(const Targets& targets, std::int64_t target)
      : target_pack(targets.is_class(target) ? target / lanes : -1),
        full_packs(targets.count / lanes),
        target_lane(static_cast<int>(target & (lanes - 1))),
        rest(static_cast<int>(targets.count & (lanes - 1))),
        has_padding(targets.count < targets.columns) {}

  /// One branch for both of what follows: two short ones become instructions of every pack.
  template <class Index>
  __device__ __forceinline__ bool has(Index pack) const {
    return pack == static_cast<Index>(target_pack) || pack >= static_cast<Index>(full_packs);
  }
  __device__ __forceinline__ bool has_any(const PackRange& packs) const {
    return (target_pack >= packs.begin && target_pack < packs.end) || packs.end > full_packs;
  }
  /// f(lane), if the target is in this pack. Packs are in registers: the lane is a constant each time.
  template <class Index, class F>
  __device__ __forceinline__ void at_target(Index pack, F&& f) const {
    if (pack != static_cast<Index>(target_pack)) return;
#pragma unroll
    for (int j = 0; j < lanes; ++j)
      if (j == target_lane) f(j);
  }
  template <class Index, class C>
  __device__ __forceinline__ void replace_padding(Index pack, Wide<C, lanes>& x, C value) const {
    if (pack < static_cast<Index>(full_packs)) return;
    const int kept = pack == static_cast<Index>(full_packs) ? rest : 0;
#pragma unroll
    for (int j = 0; j < lanes; ++j)
      if (j >= kept) x.of[j] = value;
  }
};

/// dx = dloss (p - target distribution), for one row of p = softmax(x).
template <class T, int lanes>
struct RowGradient {
  using C = Compute<T>;
  MarkedPacks<lanes> marked;
  C shift, log_sum, dloss, smoothing, offset;

  /// Near certainty x is close to both the largest logit and the lse: 32-bit results take two steps. 16-bit
  /// ones take a single one, in powers of two.
  __device__ __forceinline__ C p(C x) const {
    if constexpr (is_16_bit<T>)
      return fast_exp2(fmaf(x, log2_of_e, -fmaf(shift, log2_of_e, log_sum * log2_of_e)));
    else
      return std::exp(x - shift - log_sum);
  }

  /// Near certainty, p - 1 for the class at `target` would keep only rounding errors: use error_of(x)
  /// instead.
  template <class Index, class ErrorOf>
  __device__ __forceinline__ Wide<C, lanes> of(Index pack, const Wide<C, lanes>& x,
                                               ErrorOf&& error_of) const {
    Wide<C, lanes> dx;
#pragma unroll
    for (int j = 0; j < lanes; ++j) dx.of[j] = p(x.of[j]) * dloss - offset;
    if (marked.has(pack)) {
      marked.at_target(pack, [&](int j) { dx.of[j] = (error_of(x.of[j]) + smoothing) * dloss - offset; });
      marked.replace_padding(pack, dx, C{0});
    }
    return dx;
  }
};

}  // namespace ferrite::cuda
