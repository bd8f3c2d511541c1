// MultiHeadAttention, FeedForward and TransformerBlock.
#pragma once

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

  MultiHeadAttentionConfig with_causal(bool v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::causal, v);
  }
  MultiHeadAttentionConfig with_bias(bool v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::bias, v);
  }
  MultiHeadAttentionConfig with_dtype(DType v) const {
    return detail::with(*this, &MultiHeadAttentionConfig::dtype, v);
  }
};

/// Self-attention. Queries, keys and values come from one projection.
template <class B>
class MultiHeadAttention final : public Layer<B> {
 public:
  Linear<B> qkv;   // dim -> 3 dim: queries, keys, values, each head by head
  Linear<B> proj;  // dim -> dim

  MultiHeadAttention(B& backend, const MultiHeadAttentionConfig& config, Rng& rng)
      : qkv(backend, projection(config, 3).with_init(Initializer::xavier_uniform()), rng),
        proj(backend, projection(config, 1), rng),
        heads_(config.heads),
        causal_(config.causal) {}

  void visit(Visitor<B>& v) override {
    v.child("qkv", qkv);
    v.child("proj", proj);
  }
  /// # Shapes: x [N, T, dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return forward(x, {}); }
  /// The same with a mask that broadcasts to [N, heads, T, T]: a bool mask keeps true elements, a floating
  /// mask is added.
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& mask) {
    detail::check_rank("MultiHeadAttention", "x", x.shape(), 3);
    const std::int64_t n = x.size(0), t = x.size(1), dim = x.size(2);
    const Tensor<B> packed = reshape(qkv.forward(x), {n, t, 3, heads_, dim / heads_});
    // Each part is selected first, then transposed: this way gradients go back into `packed` without a copy
    // of it.
    const auto part = [&](std::int64_t i) { return transpose(select(packed, 2, i), 1, 2); };
    const Tensor<B> seen = attention(part(0), part(1), part(2), AttentionConfig{}.with_causal(causal_), mask);
    return proj.forward(reshape(transpose(seen, 1, 2), {n, t, dim}));
  }

 private:
  static LinearConfig projection(const MultiHeadAttentionConfig& config, std::int64_t parts) {
    if (config.heads < 1 || config.dim % config.heads != 0)
      throw ValueError("[MultiHeadAttention] dim " + std::to_string(config.dim) + " and " +
                       std::to_string(config.heads) + " heads: heads must divide dim");
    return LinearConfig{config.dim, parts * config.dim}
        .with_bias(config.bias)
        .with_bias_init(Initializer::zeros())
        .with_dtype(config.dtype);
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

  FeedForwardConfig with_activation(Activation v) const {
    return detail::with(*this, &FeedForwardConfig::activation, v);
  }
  FeedForwardConfig with_bias(bool v) const { return detail::with(*this, &FeedForwardConfig::bias, v); }
  FeedForwardConfig with_dtype(DType v) const { return detail::with(*this, &FeedForwardConfig::dtype, v); }
};

/// Two linear layers with an activation between them.
template <class B>
class FeedForward final : public Layer<B> {
 public:
  Linear<B> up;    // dim -> hidden
  Linear<B> down;  // hidden -> dim

  FeedForward(B& backend, const FeedForwardConfig& config, Rng& rng)
      : up(backend,
           LinearConfig{config.dim, config.hidden}
               .with_activation(config.activation)
               .with_bias(config.bias)
               .with_dtype(config.dtype),
           rng),
        down(backend, LinearConfig{config.hidden, config.dim}.with_bias(config.bias).with_dtype(config.dtype),
             rng) {}

  void visit(Visitor<B>& v) override {
    v.child("up", up);
    v.child("down", down);
  }
  /// # Shapes: x [..., dim] -> the same
  Tensor<B> forward(const Tensor<B>& x) override { return down.forward(up.forward(x)); }
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
                 .with_dtype(config.dtype),
             rng),
        norm2(backend, NormConfig{config.dim}.with_dtype(config.dtype)),
        ff(backend,
           FeedForwardConfig{config.dim, config.hidden > 0 ? config.hidden : 4 * config.dim}
               .with_activation(config.activation)
               .with_dtype(config.dtype),
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
    const Tensor<B> seen = x + dropout1_.forward(attn.forward(norm1.forward(x), mask));
    return seen + dropout2_.forward(ff.forward(norm2.forward(seen)));
  }

 private:
  Dropout<B> dropout1_, dropout2_;
};

}  // namespace ferrite::nn
