// Channels for batch_norm: x [N, C, ...] has a plane of dense elements for each n and c. The planes of a
// channel are cut into parts, one per block. In the next kernel every block of the channel merges the results
// of the parts, in the same order.
#pragma once

#include <algorithm>

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/rows.cuh"

namespace ferrite::cuda {

inline constexpr int plane_threads_shift = 8, plane_threads = 1 << plane_threads_shift, plane_items = 4;

struct PlanesShape {
  std::int64_t batch, channels, length;  // elements of a plane
  std::int64_t channel_packs, part_packs;
  Divider plane_packs;
  int parts;

  double per_channel() const { return static_cast<double>(batch * length); }
};

/// The host's view. Short planes would leave vectors half empty: then the channel comes first, and each
/// channel is one plane.
class Planes {
 public:
  explicit Planes(const Shape& x) : rank_(x.rank()) {
    shape_.batch = x[0];
    shape_.channels = x[1];
    shape_.length = 1;
    for (int i = 2; i < rank_; ++i) shape_.length *= x[i];
    channel_first_ = shape_.length < 16;
    if (!channel_first_) return;
    shape_.length *= shape_.batch;
    shape_.batch = 1;
  }
  /// x with planes of dense elements, if it is dense afterwards: a view.
  Array arrange(const Array& x) const {
    if (!channel_first_) return x;
    Shape order;
    for (int i = 0; i < rank_; ++i) order.push_back(i < 2 ? 1 - i : i);
    return x.with_layout(x.layout().permute(order));
  }
  std::int64_t length() const { return shape_.length; }

  /// Cut for packs of `lanes` elements: about 16 blocks for every multiprocessor, if each gets enough to do.
  PlanesShape cut(const Call& call, int lanes) const {
    PlanesShape shape = shape_;
    shape.plane_packs = Divider(shape.length / lanes);
    shape.channel_packs = shape.batch * (shape.length / lanes);
    const std::int64_t wanted = 16 * call.properties().multiProcessorCount / shape.channels;
    const std::int64_t sensible = divide_up(shape.channel_packs, plane_threads * plane_items);
    const std::int64_t parts = std::max<std::int64_t>(std::min(wanted, sensible), 1);
    shape.part_packs = divide_up(shape.channel_packs, parts);
    shape.parts = static_cast<int>(divide_up(shape.channel_packs, shape.part_packs));
    return shape;
  }

 private:
  int rank_;
  bool channel_first_;
  PlanesShape shape_{};
};

/// The work of one block.
template <class T, int lanes, int inputs>
class ChannelPart {
 public:
  using C = Compute<T>;

  __device__ __forceinline__ ChannelPart(const PlanesShape& shape, const void* const (&in)[inputs],
                                         std::int64_t block)
      : shape_(shape), in_(in), channel_(block / shape.parts) {
    begin_ = (block - channel_ * shape.parts) * shape.part_packs;
    end_ = begin_ + shape.part_packs < shape.channel_packs ? begin_ + shape.part_packs : shape.channel_packs;
  }
  __device__ __forceinline__ std::int64_t channel() const { return channel_; }
  __device__ __forceinline__ bool is_first() const { return begin_ == 0; }

  /// f(each, elements), several packs at a time: each(g) calls g(pack index, x...) with a Wide of every
  /// input.
  template <class F>
  __device__ __forceinline__ void walk(F&& f) const {
    for (std::int64_t i = begin_ + threadIdx.x; i < end_; i += plane_threads * plane_items) {
      RawPack<T, lanes> pack[inputs][plane_items];
      std::int64_t at[plane_items];
      int elements = 0;
#pragma unroll
      for (int u = 0; u < plane_items; ++u) {
        const std::int64_t index = i + u * plane_threads;
        if (index >= end_) continue;
        elements += lanes;
        const std::int64_t n = shape_.plane_packs.quotient(index);
        at[u] = (n * (shape_.channels - 1) + channel_) * shape_.plane_packs.divisor + index;
#pragma unroll
        for (int k = 0; k < inputs; ++k) pack[k][u] = static_cast<const RawPack<T, lanes>*>(in_[k])[at[u]];
      }
      f(
          [&](auto&& g) {
#pragma unroll
            for (int u = 0; u < plane_items; ++u) {
              if (i + u * plane_threads >= end_) continue;
              if constexpr (inputs == 1)
                g(at[u], pack[0][u].wide());
              else
                g(at[u], pack[0][u].wide(), pack[1][u].wide());
            }
          },
          elements);
    }
  }

 private:
  const PlanesShape& shape_;
  const void* const (&in_)[inputs];
  std::int64_t channel_, begin_, end_;
};

/// A value per channel, of any floating dtype.
struct ChannelValues {
  void* data;
  DType dtype;
  bool add;

  template <class C>
  __device__ __forceinline__ C read(std::int64_t channel) const {
    switch (dtype) {
      case DType::f64:
        return convert_to<C>(static_cast<const double*>(data)[channel]);
      case DType::f16:
        return convert_to<C>(static_cast<const __half*>(data)[channel]);
      case DType::bf16:
        return convert_to<C>(static_cast<const __nv_bfloat16*>(data)[channel]);
      default:
        return convert_to<C>(static_cast<const float*>(data)[channel]);
    }
  }
  template <class C>
  __device__ __forceinline__ void write(std::int64_t channel, C value) const {
    if (add) value += read<C>(channel);
    switch (dtype) {
      case DType::f64:
        static_cast<double*>(data)[channel] = convert_to<double>(value);
        return;
      case DType::f16:
        static_cast<__half*>(data)[channel] = convert_to<__half>(value);
        return;
      case DType::bf16:
        static_cast<__nv_bfloat16*>(data)[channel] = convert_to<__nv_bfloat16>(value);
        return;
      default:
        static_cast<float*>(data)[channel] = convert_to<float>(value);
    }
  }
};
inline ChannelValues channel_values(const Array& x) { return {x.data(), x.dtype(), false}; }
inline ChannelValues channel_values(const Destination& x) {
  return {x.array().data(), x.array().dtype(), x.add()};
}

}  // namespace ferrite::cuda
