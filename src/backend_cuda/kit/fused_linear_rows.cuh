// The rows of fused_linear in shared memory, normalised.
#pragma once

#include "backend_cuda/kit/fused_linear.hpp"
#include "backend_cuda/kit/linear_parts.cuh"
#include "backend_cuda/kit/ptx.cuh"

namespace ferrite::cuda::fused_linear {

constexpr int warps = 8, threads = 32 * warps;

/// Rows as f32. The fours of one pack of weights lie `packs` apart, so that neighbouring threads read
/// neighbouring fours.
template <class X, class W>
class Rows {
 public:
  static constexpr int fours = pack_lanes<W> / 4;  // of a pack of weights

  __device__ Rows(void* memory, const Args<X, W>& args)
      : memory_(static_cast<float4*>(memory)), args_(args), packs_(args.inner / pack_lanes<W>) {}

  /// Elements 4 * four to 4 * four + 3 of those that are multiplied with this pack of weights.
  __device__ __forceinline__ float4& at(int row, int pack, int four) const {
    return memory_[(row * fours + four) * packs_ + pack];
  }
  /// Copies all rows, by a group of threads of which this is number `thread`. The block must synchronise
  /// afterwards.
  __device__ __forceinline__ void copy(int thread, int group) const {
    const int count = args_.inner / 4;
    for (int i = thread; i < args_.rows * count; i += group)
      at_four(i / count, i % count) = as_floats(load_pack<4>(args_.x + std::int64_t{4} * i));
  }
  /// The same for one row, which is normalised. `sum` adds what the threads have and tells all of them. Every
  /// thread reads only what it has written.
  template <class Sum>
  __device__ __forceinline__ void normalise(int row, int thread, int group, Sum&& sum) const {
    const int count = args_.inner / 4;
    const X* const x = args_.x + std::int64_t{row} * args_.inner;
    Four weight{}, bias{};  // the first are loaded early: a block has mostly no others
    const auto load_norm = [&](int i) {
      weight = load_pack<4>(args_.norm_weight + 4 * i);
      if (args_.norm_bias) bias = load_pack<4>(args_.norm_bias + 4 * i);
    };
    if (thread < count) load_norm(thread);
    float mean = 0;
    for (int i = thread; i < count; i += group) {
      const float4 v = as_floats(load_pack<4>(x + 4 * i));
      at_four(row, i) = v;
      mean += (v.x + v.y) + (v.z + v.w);
    }
    const auto inner = static_cast<float>(args_.inner);
    mean = args_.norm == RowNorm::layer ? sum(mean) / inner : 0.0f;
    float squares = 0;
    for (int i = thread; i < count; i += group) {
      const float4 v = at_four(row, i);
      const float a = v.x - mean, b = v.y - mean, c = v.z - mean, d = v.w - mean;
      squares += (a * a + b * b) + (c * c + d * d);
    }
    const float scale = rsqrtf(sum(squares) / inner + args_.eps);
    for (int i = thread; i < count; i += group) {
      if (i != thread) load_norm(i);
      const float4 v = at_four(row, i), w = as_floats(weight), b = as_floats(bias);
      at_four(row, i) = {(v.x - mean) * scale * w.x + b.x, (v.y - mean) * scale * w.y + b.y,
                         (v.z - mean) * scale * w.z + b.z, (v.w - mean) * scale * w.w + b.w};
    }
  }

 private:
  using Four = Pack<X, 4>;
  __device__ static __forceinline__ float4 as_floats(const Four& four) {
    return {convert_to<float>(four.lane[0]), convert_to<float>(four.lane[1]), convert_to<float>(four.lane[2]),
            convert_to<float>(four.lane[3])};
  }
  __device__ __forceinline__ float4& at_four(int row, int four) const {
    return at(row, four / fours, four % fours);
  }

  float4* memory_;
  const Args<X, W>& args_;
  int packs_;
};

}  // namespace ferrite::cuda::fused_linear
