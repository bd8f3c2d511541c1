// KvCache: the keys and values of the positions that a causal model has read, so that each new token costs
// one position and not the whole text.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "ferrite/nn/module.hpp"
#include "ferrite/ops/cached_attention.hpp"

namespace ferrite::nn {

/// KvCacheConfig{layers, batch, heads, capacity, width}: `capacity` positions of `batch` texts. Heads are
/// those of keys and values.
struct KvCacheConfig {
  std::int64_t layers = 0;
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t capacity = 0;
  /// Of a head.
  std::int64_t width = 0;
  DType dtype = DType::f32;

  KvCacheConfig with_dtype(DType v) const { return detail::with(*this, &KvCacheConfig::dtype, v); }
};

/// A pass through a model calls `attend` once for each layer, then `advance`. All memory is taken at the
/// start. All texts of the batch have the same length, unless keep_read_on_device was called. For inference:
/// no gradients go through it.
template <class B>
class KvCache {
 public:
  /// Throws ValueError for extents below 1.
  KvCache(B& backend, const KvCacheConfig& config) : config_(config) {
    const Shape shape{config.batch, config.heads, config.capacity, config.width};
    if (config.layers < 1 || std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 1; }))
      throw ValueError("[KvCache] " + std::to_string(config.layers) + " layers of " + to_string(shape) +
                       ": all must be at least 1");
    for (std::int64_t i = 0; i < config.layers; ++i) {
      keys_.push_back(zeros(backend, shape, config.dtype));
      values_.push_back(zeros(backend, shape, config.dtype));
    }
  }

  /// # Shapes: q [batch, H, T, width], k, v [batch, heads, T, width] -> [batch, H, T, width]; heads divide H
  /// Stores the keys and values of the T positions that follow the `length` read so far. Each query sees the
  /// positions up to its own, or the last `window` of them if that is not 0. Throws ShapeError for other
  /// shapes, ValueError if the positions do not fit, GradientError where a graph would be recorded.
  Tensor<B> attend(std::size_t layer, const Tensor<B>& q, const Tensor<B>& k, const Tensor<B>& v,
                   std::int64_t window = 0) {
    const std::int64_t end = checked_end(q, k);
    if (is_on_device()) return attend_on_device(layer, q, k, v, window);
    const Tensor<B> keys = stored(keys_.at(layer), k, end), values = stored(values_.at(layer), v, end);
    return attention(cast(q, keys.dtype()), keys, values,
                     AttentionConfig{}.with_causal(true).with_window(window));
  }
  /// Counts the positions of a pass as read.
  void advance(std::int64_t positions) {
    if (!is_on_device()) length_ += positions;
  }
  /// As new, in the same memory.
  void clear() {
    length_ = 0;
    read_ = {};
  }

  /// From now on `read`, i32 [batch], says how many positions of each text have been read, until `clear`. All
  /// passes do the same work then, so that one can be recorded and replayed: whoever owns the tensor counts.
  /// It must keep a pass within the capacity, which is not checked.
  void keep_read_on_device(Tensor<B> read) {
    detail::check_shape("KvCache", "read", read.shape(), {config_.batch});
    read_ = std::move(read);
  }
  bool is_on_device() const { return read_.defined(); }
  /// Where the next `count` positions of the texts are: [count], or [batch, count] with `read` on the device.
  Tensor<B> next_positions(std::int64_t count) const {
    B backend = keys_[0].backend();
    if (!is_on_device()) return arange(backend, length_, length_ + count, 1, DType::i64);
    const Tensor<B> first = reshape(read_, {config_.batch, 1});
    return count == 1 ? first : first + arange(backend, count, DType::i32);
  }

  /// Of the texts, where `read` is not on the device.
  std::int64_t length() const { return length_; }
  const KvCacheConfig& config() const { return config_; }

 private:
  std::int64_t checked_end(const Tensor<B>& q, const Tensor<B>& k) const {
    const std::int64_t t = q.rank() == 4 ? q.size(2) : 0, heads = q.rank() == 4 ? q.size(1) : 0;
    detail::check_shape("KvCache", "q", q.shape(), {config_.batch, heads, t, config_.width});
    detail::check_shape("KvCache", "k", k.shape(), {config_.batch, config_.heads, t, config_.width});
    if (!is_on_device() && length_ + t > config_.capacity)
      throw ValueError("[KvCache] " + std::to_string(length_) + " positions and " + std::to_string(t) +
                       " more: there is room for " + std::to_string(config_.capacity));
    if constexpr (is_autodiff<B>) {
      if (q.primitive().node && !NoGrad::active())
        throw GradientError("[KvCache] no gradients go through a cache: use it in the scope of a NoGrad");
    }
    return length_ + t;
  }
  Tensor<B> attend_on_device(std::size_t layer, const Tensor<B>& q, const Tensor<B>& k, const Tensor<B>& v,
                             std::int64_t window) {
    B backend = q.backend();
    const Tensor<B> seen = empty(backend, q.shape(), q.dtype());
    const auto array = [](const Tensor<B>& x) -> const Array& { return detail::kernel_array(x.primitive()); };
    const Tensor<B>&keys = keys_.at(layer), &values = values_.at(layer);
    const Array* in[] = {&array(q), &array(k), &array(v), &array(keys), &array(values), &array(read_)};
    Array out[] = {array(seen), array(keys), array(values)};
    const op::CachedAttention attend{1.0 / std::sqrt(static_cast<double>(config_.width)), window};
    evaluate_in_place(detail::kernel_backend(backend), attend, Ins(in, 6), Outs(out, 3));
    return seen;
  }
  /// Writes `rows` after those of earlier passes. Returns all up to `end`.
  Tensor<B> stored(const Tensor<B>& all, const Tensor<B>& rows, std::int64_t end) {
    Array place = detail::kernel_array(slice(all, 2, length_, end).primitive());
    const Array* source[] = {&detail::kernel_array(rows.primitive())};
    evaluate_in_place(detail::kernel_backend(all.backend()), op::Copy{all.dtype()}, Ins(source, 1),
                      Outs(&place, 1));
    return slice(all, 2, 0, end);
  }

  KvCacheConfig config_;
  std::vector<Tensor<B>> keys_, values_;  // one per layer, [batch, heads, capacity, width]
  std::int64_t length_ = 0;
  Tensor<B> read_;  // i32 [batch], if it counts on the device
};

}  // namespace ferrite::nn
