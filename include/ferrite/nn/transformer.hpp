// MultiHeadAttention, FeedForward and TransformerBlock.
#pragma once

#include "ferrite/nn/fused.hpp"
#include "ferrite/nn/kv_cache.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/nn/sequential.hpp"

namespace ferrite::nn {

/// MultiHeadAttentionConfig{dim, heads}: heads must divide dim.
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
};

/// Self-attention. Queries, keys and values come from one projection.
template <class B>
class MultiHeadAttention final : public Layer<B> {
 public:
  Linear<B> qkv;   // dim -> 3 dim: queries, keys, values, each head by head
  Linear<B> proj;  // dim -> dim

  MultiHeadAttention(B& backend, const MultiHeadAttentionConfig& config, Rng& rng)
      : qkv(backend, projection(config, 3, config.init.value_or(Initializer::xavier_uniform())), rng),
        proj(backend, projection(config, 1, config.residual_init), rng),
        heads_(config.heads),
        causal_(config.causal) {}

  void visit(Visitor<B>& v) override {
    v.child("qkv", qkv);
    v.child("proj", proj);
  }
  /// # Shapes: x [N, T, dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same with a mask that broadcasts to [N, heads, T, T]: a bool mask keeps true elements, a floating
  /// mask is added. The result is added to a residual [N, T, dim], if that is defined.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& mask, const Tensor<B>& residual = {}) {
    const auto config = AttentionConfig{}.with_causal(causal_);
    if (!mask.defined()) return proj.forward(flatten(self_attention(packed(x), config), 2), residual);
    const auto [q, k, v] = parts(packed(x));
    return joined(attention(q, k, v, config, mask), residual);
  }
  /// The positions of x follow those in the cache, which takes them in (see KvCache::attend). Throws
  /// ValueError unless the attention is causal.
  Tensor<B> forward(const Tensor<B>& x, KvCache<B>& cache, std::size_t layer,
                    const Tensor<B>& residual = {}) {
    if (!causal_) throw ValueError("[MultiHeadAttention] a cache needs causal attention: with_causal(true)");
    const auto [q, k, v] = parts(packed(x));
    return joined(cache.attend(layer, q, k, v), residual);
  }
  /// x + forward(norm(x), cache, layer), in fewer ops: for steps of few rows.
  Tensor<B> step(const Tensor<B>& x, const LayerNorm<B>& norm, KvCache<B>& cache, std::size_t layer) {
    if (!causal_) throw ValueError("[MultiHeadAttention] a cache needs causal attention: with_causal(true)");
    const auto [q, k, v] = parts(in_heads(fused_linear(qkv, x, &norm)));
    return fused_linear(proj, flatten(transpose(cache.attend(layer, q, k, v), 1, 2), 2), {}, x);
  }

 private:
  struct Parts {
    Tensor<B> q, k, v;  // [N, heads, T, dim / heads]
  };
  Tensor<B> packed(const Tensor<B>& x) {
    detail::check_rank("MultiHeadAttention", "x", x.shape(), 3);
    return in_heads(qkv.forward(x));
  }
  Tensor<B> in_heads(const Tensor<B>& all) {
    return reshape(all, {all.size(0), all.size(1), 3, heads_, all.size(2) / (3 * heads_)});
  }
  Parts parts(const Tensor<B>& all) {
    // Each part is selected first, then transposed: this way gradients go back into `all` without a copy of
    // it.
    const auto part = [&](std::int64_t i) { return transpose(select(all, 2, i), 1, 2); };
    return {part(0), part(1), part(2)};
  }
  Tensor<B> joined(const Tensor<B>& seen, const Tensor<B>& residual) {
    return proj.forward(flatten(transpose(seen, 1, 2), 2), residual);
  }

  static LinearConfig projection(const MultiHeadAttentionConfig& config, std::int64_t parts,
                                 const std::optional<Initializer>& init) {
    if (config.heads < 1 || config.dim % config.heads != 0)
      throw ValueError("[MultiHeadAttention] dim " + std::to_string(config.dim) + " and " +
                       std::to_string(config.heads) + " heads: heads must divide dim");
    const auto linear = LinearConfig{config.dim, parts * config.dim}
                            .with_bias(config.bias)
                            .with_bias_init(Initializer::zeros())
                            .with_dtype(config.dtype);
    return init ? linear.with_init(*init) : linear;
  }

  std::int64_t heads_;
  bool causal_;
};

/// FeedForwardConfig{dim, hidden}
struct FeedForwardConfig {
  std::int64_t dim = 0;
  std::int64_t hidden = 0;
  Activation activation = Activation::gelu;
  bool bias = true;
  DType dtype = DType::f32;
  /// Of up's weight; its bias is then zero. Absent: as a Linear has them.
  std::optional<Initializer> init = std::nullopt;
  /// Of down's weight, likewise.
  std::optional<Initializer> residual_init = std::nullopt;

  FeedForwardConfig with_activation(Activation v) const {
    return detail::with(*this, &FeedForwardConfig::activation, v);
  }
  FeedForwardConfig with_bias(bool v) const { return detail::with(*this, &FeedForwardConfig::bias, v); }
  FeedForwardConfig with_dtype(DType v) const { return detail::with(*this, &FeedForwardConfig::dtype, v); }
  FeedForwardConfig with_init(std::optional<Initializer> v) const {
    return detail::with(*this, &FeedForwardConfig::init, v);
  }
  FeedForwardConfig with_residual_init(std::optional<Initializer> v) const {
    return detail::with(*this, &FeedForwardConfig::residual_init, v);
  }
};

/// Two linear layers with an activation between them.
template <class B>
class FeedForward final : public Layer<B> {
 public:
  Linear<B> up;    // dim -> hidden
  Linear<B> down;  // hidden -> dim

  FeedForward(B& backend, const FeedForwardConfig& config, Rng& rng)
      : up(backend, part(config, {config.dim, config.hidden}, config.init).with_activation(config.activation),
           rng),
        down(backend, part(config, {config.hidden, config.dim}, config.residual_init), rng) {}

  void visit(Visitor<B>& v) override {
    v.child("up", up);
    v.child("down", down);
  }
  /// # Shapes: x [..., dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same, added to a residual [..., dim], which may be undefined.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& residual) {
    return down.forward(up.forward(x), residual);
  }

 private:
  static LinearConfig part(const FeedForwardConfig& config, const LinearConfig& extents,
                           const std::optional<Initializer>& init) {
    const LinearConfig linear = extents.with_bias(config.bias).with_dtype(config.dtype);
    return init ? linear.with_init(*init).with_bias_init(Initializer::zeros()) : linear;
  }
};

/// TransformerBlockConfig{dim, heads}: heads must divide dim.
struct TransformerBlockConfig {
  std::int64_t dim = 0;
  std::int64_t heads = 1;
  /// 0 means 4 dim.
  std::int64_t hidden = 0;
  /// As in MultiHeadAttentionConfig.
  bool causal = false;
  Activation activation = Activation::gelu;
  /// The probability with which an element of either branch is zeroed in training.
  double dropout = 0;
  DType dtype = DType::f32;
  /// Of attn.qkv and ff.up. Absent: as MultiHeadAttentionConfig and FeedForwardConfig have them.
  std::optional<Initializer> init = std::nullopt;
  /// Of attn.proj and ff.down, whose results are added to x; likewise.
  std::optional<Initializer> residual_init = std::nullopt;

  TransformerBlockConfig with_hidden(std::int64_t v) const {
    return detail::with(*this, &TransformerBlockConfig::hidden, v);
  }
  TransformerBlockConfig with_causal(bool v) const {
    return detail::with(*this, &TransformerBlockConfig::causal, v);
  }
  TransformerBlockConfig with_activation(Activation v) const {
    return detail::with(*this, &TransformerBlockConfig::activation, v);
  }
  TransformerBlockConfig with_dropout(double v) const {
    return detail::with(*this, &TransformerBlockConfig::dropout, v);
  }
  TransformerBlockConfig with_dtype(DType v) const {
    return detail::with(*this, &TransformerBlockConfig::dtype, v);
  }
  TransformerBlockConfig with_init(std::optional<Initializer> v) const {
    return detail::with(*this, &TransformerBlockConfig::init, v);
  }
  TransformerBlockConfig with_residual_init(std::optional<Initializer> v) const {
    return detail::with(*this, &TransformerBlockConfig::residual_init, v);
  }
};

/// Pre-norm: x + dropout(attn(norm1(x))), then the same with ff and norm2.
template <class B>
class TransformerBlock final : public Layer<B> {
 public:
  LayerNorm<B> norm1;
  MultiHeadAttention<B> attn;
  LayerNorm<B> norm2;
  FeedForward<B> ff;

  TransformerBlock(B& backend, const TransformerBlockConfig& config, Rng& rng)
      : norm1(backend, NormConfig{config.dim}.with_dtype(config.dtype)),
        attn(backend,
             MultiHeadAttentionConfig{config.dim, config.heads}
                 .with_causal(config.causal)
                 .with_dtype(config.dtype)
                 .with_init(config.init)
                 .with_residual_init(config.residual_init),
             rng),
        norm2(backend, NormConfig{config.dim}.with_dtype(config.dtype)),
        ff(backend,
           FeedForwardConfig{config.dim, config.hidden > 0 ? config.hidden : 4 * config.dim}
               .with_activation(config.activation)
               .with_dtype(config.dtype)
               .with_init(config.init)
               .with_residual_init(config.residual_init),
           rng),
        dropout1_(config.dropout, rng),
        dropout2_(config.dropout, rng) {}

  void visit(Visitor<B>& v) override {
    v.child("norm1", norm1);
    v.child("attn", attn);
    v.child("norm2", norm2);
    v.child("ff", ff);
    v.child("dropout1", dropout1_);
    v.child("dropout2", dropout2_);
  }
  /// # Shapes: x [N, T, dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same with a mask for the attention.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& mask) {
    return fed(added(x, dropout1_, [&](const Tensor<B>& residual) {
      return attn.forward(norm1.forward(x), mask, residual);
    }));
  }
  /// The same with a cache for the attention.
  Tensor<B> forward(const Tensor<B>& x, KvCache<B>& cache, std::size_t layer) {
    if (cache.is_on_device() && this->mode() == Mode::inference) {
      const Tensor<B> seen = attn.step(x, norm1, cache, layer);
      return fused_linear(ff.down, fused_linear(ff.up, seen, &norm2), {}, seen);
    }
    return fed(added(x, dropout1_, [&](const Tensor<B>& residual) {
      return attn.forward(norm1.forward(x), cache, layer, residual);
    }));
  }

 private:
  Tensor<B> fed(const Tensor<B>& seen) {
    return added(seen, dropout2_,
                 [&](const Tensor<B>& residual) { return ff.forward(norm2.forward(seen), residual); });
  }
  /// x + dropout(branch). Without dropout the last product of the branch adds x.
  template <class Branch>
  static Tensor<B> added(const Tensor<B>& x, Dropout<B>& dropout, Branch&& branch) {
    return dropout.is_active() ? x + dropout.forward(branch(Tensor<B>())) : branch(x);
  }

  Dropout<B> dropout1_, dropout2_;
};

}  // namespace ferrite::nn
