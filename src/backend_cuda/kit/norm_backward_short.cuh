// The gradients of layer_norm and rms_norm: what they take from a row, and the kernel for rows of at most one
// pack for each lane of a warp.
#pragma once

#include "backend_cuda/kit/norm_rows.cuh"

namespace ferrite::cuda {

struct NormBackward {
  const void *weight, *mean, *rstd;  // no mean: rms_norm
  void *dx, *partial;                // partial sums [dweight, dbias][crews][length]; not of long rows
  std::int64_t length;
  bool add;
};
/// What dx takes from the whole row, and how it follows. centred: layer_norm; for rms_norm the mean is 0.
/// Elements of 16 bits are so coarse that their distance from the mean may come last.
template <class T, bool centred>
struct RowSlopes {
  using C = Compute<T>;
  static constexpr bool centres_first = centred && !is_16_bit<T>;
  C mean, rstd, offset, slope;

  __device__ __forceinline__ static RowSlopes read(const NormBackward& norm, std::int64_t row) {
    return {centred ? static_cast<const C*>(norm.mean)[row] : C{0}, static_cast<const C*>(norm.rstd)[row], 0,
            0};
  }
  __device__ __forceinline__ C normed(C x) const {
    return centred && !centres_first ? x * rstd - mean * rstd : (centred ? x - mean : x) * rstd;
  }
  /// Sums of dn = dy weight, and of dn times the row.
  template <int lanes>
  __device__ __forceinline__ void add(Sums<C, 2>& found, const Wide<C, lanes>& dy, const Wide<C, lanes>& x,
                                      const Wide<C, lanes>& weight) const {
#pragma unroll
    for (int j = 0; j < lanes; ++j) {
      const C dn = dy.of[j] * weight.of[j];
      if (centred) found.of[0] += dn;
      found.of[1] += dn * (centres_first ? x.of[j] - mean : x.of[j]);
    }
  }
  /// From these sums of the whole row. Both are then multiples of rstd, as dx() wants them.
  __device__ __forceinline__ void follow_from(const Sums<C, 2>& found, std::int64_t length) {
    const C share = rstd / static_cast<C>(length);
    offset = found.of[0] * share;
    slope = (centred && !centres_first ? found.of[1] - mean * found.of[0] : found.of[1]) * rstd * share;
  }
  __device__ __forceinline__ C dx(C dy, C weight, C normed) const {
    return dy * rstd * weight - (centred ? normed * slope + offset : normed * slope);
  }
};

/// Blocks of so many warps, each with so many rows on their way from memory.
inline constexpr int short_norm_warps = 8, short_norm_rows = 4;

struct ShortNormArgs {
  RowPlace dy, x;
  std::int64_t rows;
  NormBackward norm;
};

/// A warp has a row, in one pack for each lane; those beyond its end hold zeros.
template <class T, class W, int lanes, bool centred>
__global__ void __launch_bounds__(32 * short_norm_warps, 2)
    short_norm_backward_kernel(const __grid_constant__ ShortNormArgs args) {
  using C = Compute<T>;
  using Slopes = RowSlopes<T, centred>;
  constexpr int at_once = short_norm_rows, warps = short_norm_warps;
  const NormBackward& norm = args.norm;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, length = static_cast<int>(norm.length);
  const bool has_pack = lane * lanes < length;
  Wide<C, lanes> weight{};
  if (has_pack) weight = ParameterInMemory<W, lanes>(norm.weight).get(lane, 0);
  C dweight[lanes] = {}, dbias[lanes] = {};
  const std::int64_t step = std::int64_t{gridDim.x} * warps * at_once;
  for (std::int64_t first = (std::int64_t{blockIdx.x} * warps + warp) * at_once; first < args.rows;
       first += step) {
    RawPack<T, lanes> dy[at_once] = {}, x[at_once] = {}, old[at_once] = {};
    Slopes row[at_once] = {};
    T* dx[at_once];
#pragma unroll
    for (int r = 0; r < at_once; ++r) {
      const std::int64_t at = first + r;
      dx[r] = static_cast<T*>(norm.dx) + at * length + lane * lanes;
      if (at >= args.rows) continue;
      row[r] = Slopes::read(norm, at);
      if (!has_pack) continue;
      const auto pack_of = [&](const RowPlace& place) {
        return reinterpret_cast<const RawPack<T, lanes>*>(static_cast<const T*>(place.data) +
                                                          at * place.stride)[lane];
      };
      dy[r] = pack_of(args.dy), x[r] = pack_of(args.x);
      if (norm.add) old[r] = *reinterpret_cast<const RawPack<T, lanes>*>(dx[r]);
    }
#pragma unroll
    for (int r = 0; r < at_once; ++r) {
      const Wide<C, lanes> wide_dy = dy[r].wide(), wide_x = x[r].wide();
      Sums<C, 2> found;
      row[r].add(found, wide_dy, wide_x, weight);
      found.across(32);
      row[r].follow_from(found, norm.length);
      Wide<C, lanes> result = old[r].wide();
#pragma unroll
      for (int j = 0; j < lanes; ++j) {
        const C normed = row[r].normed(wide_x.of[j]), given = row[r].dx(wide_dy.of[j], weight.of[j], normed);
        result.of[j] = norm.add ? result.of[j] + given : given;
        dweight[j] += wide_dy.of[j] * normed;
        if (centred) dbias[j] += wide_dy.of[j];
      }
      if (has_pack && first + r < args.rows)
        *reinterpret_cast<Pack<T, lanes>*>(dx[r]) = narrow<T, lanes>(result);
    }
  }
  __shared__ C sums[warps][centred ? 2 : 1][32 * lanes];
#pragma unroll
  for (int j = 0; j < lanes; ++j) {
    sums[warp][0][lane * lanes + j] = dweight[j];
    if constexpr (centred) sums[warp][1][lane * lanes + j] = dbias[j];
  }
  __syncthreads();
  for (int k = 0; k < (centred ? 2 : 1); ++k)
    for (int at = threadIdx.x; at < length; at += blockDim.x) {
      C sum = 0;
      for (int w = 0; w < warps; ++w) sum += sums[w][k][at];
      static_cast<C*>(norm.partial)[(k * std::int64_t{gridDim.x} + blockIdx.x) * length + at] = sum;
    }
}

}  // namespace ferrite::cuda
