// TransformerBlock.
#pragma once

#include "ferrite/nn/attention.hpp"
#include "ferrite/nn/feed_forward.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/nn/sequential.hpp"
#include "ferrite/ops/rope.hpp"

namespace ferrite::nn {

/// TransformerBlockConfig{dim, heads}: heads must divide dim, unless their width is given.
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
  NormKind norm = NormKind::layer;
  double eps = 1e-5;
  // As in FeedForwardConfig and MultiHeadAttentionConfig.
  bool gated = false;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t window = 0;
  std::optional<RopeConfig> rope = std::nullopt;
  /// Of all linear layers.
  bool bias = true;
  /// Of attn.qkv. Absent: as `bias` says.
  std::optional<bool> qkv_bias = std::nullopt;

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
  TransformerBlockConfig with_norm(NormKind v) const {
    return detail::with(*this, &TransformerBlockConfig::norm, v);
  }
  TransformerBlockConfig with_eps(double v) const {
    return detail::with(*this, &TransformerBlockConfig::eps, v);
  }
  TransformerBlockConfig with_gated(bool v) const {
    return detail::with(*this, &TransformerBlockConfig::gated, v);
  }
  TransformerBlockConfig with_kv_heads(std::int64_t v) const {
    return detail::with(*this, &TransformerBlockConfig::kv_heads, v);
  }
  TransformerBlockConfig with_head_width(std::int64_t v) const {
    return detail::with(*this, &TransformerBlockConfig::head_width, v);
  }
  TransformerBlockConfig with_window(std::int64_t v) const {
    return detail::with(*this, &TransformerBlockConfig::window, v);
  }
  TransformerBlockConfig with_rope(std::optional<RopeConfig> v) const {
    return detail::with(*this, &TransformerBlockConfig::rope, v);
  }
  TransformerBlockConfig with_bias(bool v) const {
    return detail::with(*this, &TransformerBlockConfig::bias, v);
  }
  TransformerBlockConfig with_qkv_bias(std::optional<bool> v) const {
    return detail::with(*this, &TransformerBlockConfig::qkv_bias, v);
  }

  // Of the parts.
  NormConfig norm_config() const { return NormConfig{dim}.with_eps(eps).with_dtype(dtype).with_kind(norm); }
  MultiHeadAttentionConfig attention_config() const {
    return MultiHeadAttentionConfig{dim, heads}
        .with_causal(causal)
        .with_bias(qkv_bias.value_or(bias))
        .with_proj_bias(bias)
        .with_dtype(dtype)
        .with_init(init)
        .with_residual_init(residual_init)
        .with_kv_heads(kv_heads)
        .with_head_width(head_width)
        .with_window(window)
        .with_rope(rope);
  }
  FeedForwardConfig feed_forward_config() const {
    return FeedForwardConfig{dim, hidden > 0 ? hidden : 4 * dim}
        .with_activation(activation)
        .with_bias(bias)
        .with_dtype(dtype)
        .with_init(init)
        .with_residual_init(residual_init)
        .with_gated(gated);
  }
};

/// Pre-norm: x + dropout(attn(norm1(x))), then the same with ff and norm2.
template <class B>
class TransformerBlock final : public Layer<B> {
 public:
  Norm<B> norm1;
  MultiHeadAttention<B> attn;
  Norm<B> norm2;
  FeedForward<B> ff;

  TransformerBlock(B& backend, const TransformerBlockConfig& config, Rng& rng)
      : norm1(backend, config.norm_config()),
        attn(backend, config.attention_config(), rng),
        norm2(backend, config.norm_config()),
        ff(backend, config.feed_forward_config(), rng),
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
    if (cache.is_on_device() && this->mode() == Mode::inference)
      return ff.step(attn.step(x, norm1, cache, layer), norm2);
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
