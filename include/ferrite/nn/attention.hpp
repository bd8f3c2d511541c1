// MultiHeadAttention.
#pragma once

#include "ferrite/nn/fused.hpp"
#include "ferrite/nn/kv_cache.hpp"
#include "ferrite/ops/cross_attention.hpp"
#include "ferrite/ops/rope.hpp"
#include "ferrite/ops/self_attention.hpp"

namespace ferrite::nn {

/// MultiHeadAttentionConfig{dim, heads}: heads must divide dim, unless their width is given.
struct MultiHeadAttentionConfig {
  std::int64_t dim = 0;
  std::int64_t heads = 1;
  /// true: a position sees itself and earlier ones. false: every position sees every other.
  bool causal = false;
  bool bias = true;
  DType dtype = DType::f32;
  /// Of qkv's weight. Absent: Xavier uniform.
  std::optional<Initializer> init = std::nullopt;
  /// Of proj's weight, which is added to the residual stream. Absent: as a Linear has it.
  std::optional<Initializer> residual_init = std::nullopt;
  /// Heads of keys and values, which heads of queries share in groups; must divide heads. 0: as many as
  /// heads.
  std::int64_t kv_heads = 0;
  /// Elements of a head. 0: dim / heads.
  std::int64_t head_width = 0;
  /// A position sees only those nearer than this; with causal, the last `window`. 0: no limit.
  std::int64_t window = 0;
  /// Queries and keys are rotated by their positions. Absent: positions are not seen.
  std::optional<RopeConfig> rope = std::nullopt;
  /// Whether proj has a bias. Absent: as `bias` says.
  std::optional<bool> proj_bias = std::nullopt;

  MultiHeadAttentionConfig with_causal(bool v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::causal, v);
  }
  MultiHeadAttentionConfig with_bias(bool v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::bias, v);
  }
  MultiHeadAttentionConfig with_dtype(DType v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::dtype, v);
  }
  MultiHeadAttentionConfig with_init(std::optional<Initializer> v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::init, v);
  }
  MultiHeadAttentionConfig with_residual_init(std::optional<Initializer> v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::residual_init, v);
  }
  MultiHeadAttentionConfig with_kv_heads(std::int64_t v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::kv_heads, v);
  }
  MultiHeadAttentionConfig with_head_width(std::int64_t v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::head_width, v);
  }
  MultiHeadAttentionConfig with_window(std::int64_t v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::window, v);
  }
  MultiHeadAttentionConfig with_rope(std::optional<RopeConfig> v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::rope, v);
  }
  MultiHeadAttentionConfig with_proj_bias(std::optional<bool> v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::proj_bias, v);
  }

  /// The members that may be 0, as they are meant.
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t width() const { return head_width > 0 ? head_width : dim / heads; }
  /// Throws ValueError for heads that do not fit each other or dim, a negative window, and for rotations of
  /// an odd width.
  void check() const {
    if (heads < 1 || (head_width <= 0 && dim % heads != 0))
      throw ValueError("[MultiHeadAttention] dim " + std::to_string(dim) + " and " + std::to_string(heads) +
                       " heads: heads must divide dim");
    if (heads % key_heads() != 0)
      throw ValueError("[MultiHeadAttention] " + std::to_string(heads) + " heads and " +
                       std::to_string(kv_heads) + " of keys and values: these must divide those");
    if (window < 0)
      throw ValueError("[MultiHeadAttention] window " + std::to_string(window) + ": must not be negative");
    if (rope && width() % 2 != 0)
      throw ValueError("[MultiHeadAttention] heads of " + std::to_string(width()) +
                       " elements: rope needs an even number");
  }
};

/// Self-attention. Queries, keys and values come from one projection.
/// Names below: `heads` of queries, `key_heads` of keys and of values, each `width` wide.
template <class B>
class MultiHeadAttention final : public Layer<B> {
 public:
  Linear<B> qkv;   // dim -> (heads + 2 key_heads) width: queries, keys, values, each head by head
  Linear<B> proj;  // heads width -> dim

  /// Throws as MultiHeadAttentionConfig::check does.
  MultiHeadAttention(B& backend, const MultiHeadAttentionConfig& config, Rng& rng)
      : qkv(backend, of_parts(config), rng), proj(backend, of_result(config), rng), config_(config) {
    if (config.rope)
      frequencies_ = rope_frequencies(backend, *config.rope, config.width(), wide_dtype(config.dtype));
  }

  void visit(Visitor<B>& v) override {
    v.child("qkv", qkv);
    v.child("proj", proj);
  }
  /// # Shapes: x [N, T, dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same with a mask that broadcasts to [N, heads, T, T]: a bool mask keeps true elements, a floating
  /// mask is added. The result is added to a residual [N, T, dim], if that is defined.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& mask, const Tensor<B>& residual = {}) {
    detail::check_rank("MultiHeadAttention", "x", x.shape(), 3);
    const auto config = AttentionConfig{}.with_causal(config_.causal).with_window(config_.window);
    if (is_plain() && !mask.defined()) {
      const Shape packed{x.size(0), x.size(1), 3, config_.heads, config_.width()};
      return proj.forward(flatten(self_attention(reshape(qkv.forward(x), packed), config), 2), residual);
    }
    const auto [q, k, v] = parts(qkv.forward(x), nullptr);
    return proj.forward(flatten(cross_attention(q, k, v, config, mask), 2), residual);
  }
  /// The positions of x follow those in the cache, which takes them in (see KvCache::attend). Throws
  /// ValueError unless the attention is causal.
  Tensor<B> forward(const Tensor<B>& x, KvCache<B>& cache, std::size_t layer,
                    const Tensor<B>& residual = {}) {
    check_takes_cache(x);
    return proj.forward(attended(qkv.forward(x), cache, layer), residual);
  }
  /// x + forward(norm(x), cache, layer), in fewer ops: for steps of one position.
  Tensor<B> step(const Tensor<B>& x, const Norm<B>& norm, KvCache<B>& cache, std::size_t layer) {
    check_takes_cache(x);
    return fused_linear(proj, attended(fused_linear(qkv, x, &norm), cache, layer), {}, x);
  }

 private:
  struct Parts {
    Tensor<B> q, k, v;  // [N, T, heads, width], those of k and v with key_heads
  };
  /// Whether one op takes the projection as it is.
  bool is_plain() const { return config_.key_heads() == config_.heads && !config_.rope; }
  void check_takes_cache(const Tensor<B>& x) const {
    detail::check_rank("MultiHeadAttention", "x", x.shape(), 3);
    if (!config_.causal)
      throw ValueError("[MultiHeadAttention] a cache needs causal attention: with_causal(true)");
  }
  /// Of the projection [N, T, (heads + 2 key_heads) width], whose positions follow those in the cache.
  Parts parts(const Tensor<B>& projected, const KvCache<B>* cache) {
    const std::int64_t queries = config_.heads, turning = queries + config_.key_heads();
    const Tensor<B> all = reshape(
        projected, {projected.size(0), projected.size(1), turning + config_.key_heads(), config_.width()});
    const Tensor<B> turned = config_.rope ? rotated(slice(all, 2, 0, turning), cache) : all;
    return {slice(turned, 2, 0, queries), slice(turned, 2, queries, turning),
            slice(all, 2, turning, turning + config_.key_heads())};
  }
  /// # Shapes: heads [N, T, H, width] -> the same
  Tensor<B> rotated(const Tensor<B>& heads, const KvCache<B>* cache) {
    if (!cache || !cache->is_on_device())
      return rope(heads, frequencies_, cache ? cache->length() : 0, -3, config_.rope->pairs);
    if (heads.size(1) != 1)
      throw ValueError(
          "[MultiHeadAttention] rope, and what was read is counted on the device: one position at "
          "a time");
    return rope(heads, frequencies_, flatten(cache->next_positions(1)), 0, config_.rope->pairs);
  }
  /// What the positions of a projection see in the cache, which takes them in. -> [N, T, heads width]
  Tensor<B> attended(const Tensor<B>& projected, KvCache<B>& cache, std::size_t layer) {
    const auto [q, k, v] = parts(projected, &cache);
    const auto heads_first = [](const Tensor<B>& x) { return transpose(x, 1, 2); };
    const Tensor<B> seen =
        cache.attend(layer, heads_first(q), heads_first(k), heads_first(v), config_.window);
    return flatten(transpose(seen, 1, 2), 2);
  }

  static LinearConfig of_parts(const MultiHeadAttentionConfig& config) {
    config.check();
    return LinearConfig{config.dim, (config.heads + 2 * config.key_heads()) * config.width()}
        .with_bias(config.bias)
        .with_bias_init(Initializer::zeros())
        .with_dtype(config.dtype)
        .with_init(config.init.value_or(Initializer::xavier_uniform()));
  }
  static LinearConfig of_result(const MultiHeadAttentionConfig& config) {
    const auto linear = LinearConfig{config.heads * config.width(), config.dim}
                            .with_bias(config.proj_bias.value_or(config.bias))
                            .with_bias_init(Initializer::zeros())
                            .with_dtype(config.dtype);
    return config.residual_init ? linear.with_init(*config.residual_init) : linear;
  }

  MultiHeadAttentionConfig config_;
  Tensor<B> frequencies_;  // of rope; made from the config, so the state does not have it
};

}  // namespace ferrite::nn
