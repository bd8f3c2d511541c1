// Gpt: the language model GPT-2 (Radford et al., 2019).
//
//   Rng rng(1);
//   nn::Gpt<B> model(backend, nn::GptConfig::gpt2(), rng);
//   const auto loss = model.loss(ids, targets);
//
// generate.hpp writes text with it.
#pragma once

#include "ferrite/nn/transformer.hpp"

namespace ferrite::nn {

/// The sizes of a Gpt. The defaults are those of the smallest GPT-2.
struct FERRITE_API GptConfig {
  /// Tokens that there are.
  std::int64_t vocab = 50257;
  /// Most positions of a text that the model sees at once.
  std::int64_t context = 1024;
  std::int64_t layers = 12;
  /// Of each layer; must divide dim.
  std::int64_t heads = 12;
  /// Features of a position.
  std::int64_t dim = 768;
  /// The probability with which elements of the embeddings and of every branch are zeroed in training.
  double dropout = 0;
  DType dtype = DType::f32;

  static GptConfig gpt2() { return {}; }
  static GptConfig gpt2_medium() { return gpt2().with_layers(24).with_heads(16).with_dim(1024); }
  static GptConfig gpt2_large() { return gpt2().with_layers(36).with_heads(20).with_dim(1280); }
  static GptConfig gpt2_xl() { return gpt2().with_layers(48).with_heads(25).with_dim(1600); }

  GptConfig with_vocab(std::int64_t v) const { return detail::with(*this, &GptConfig::vocab, v); }
  GptConfig with_context(std::int64_t v) const { return detail::with(*this, &GptConfig::context, v); }
  GptConfig with_layers(std::int64_t v) const { return detail::with(*this, &GptConfig::layers, v); }
  GptConfig with_heads(std::int64_t v) const { return detail::with(*this, &GptConfig::heads, v); }
  GptConfig with_dim(std::int64_t v) const { return detail::with(*this, &GptConfig::dim, v); }
  GptConfig with_dropout(double v) const { return detail::with(*this, &GptConfig::dropout, v); }
  GptConfig with_dtype(DType v) const { return detail::with(*this, &GptConfig::dtype, v); }

  /// Rows of the token table: a multiple of 128, which products like. Those beyond the vocabulary belong to
  /// no token: their scores are cut off, and they get no gradient.
  std::int64_t padded_vocab() const { return (vocab + 127) / 128 * 128; }
  /// Without the rows that pad the vocabulary: the count that is published.
  std::int64_t parameter_count() const;

  /// Throws ValueError for sizes below 1, heads that do not divide dim, a dropout outside [0, 1], and a dtype
  /// that is not floating.
  void check() const;
  /// A JSON object with every member. Files of models hold it in their metadata (train/gpt_file.hpp).
  std::string to_json() const;
  /// Throws ParseError, in which `name` stands for the source, unless the text is what to_json writes and
  /// passes `check`.
  static GptConfig from_json(std::string_view text, std::string_view name);

  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

/// Token and position embeddings, blocks, a norm; the table of the token embeddings is also the output
/// projection. Initialised as GPT-2: weights N(0, 0.02), those that are added to the residual stream divided
/// by sqrt(2 layers), biases 0.
template <class B>
class Gpt final : public Module<B> {
 public:
  Embedding<B> tokens;     // [padded vocab, dim]; also the output projection
  Embedding<B> positions;  // [context, dim]
  std::vector<TransformerBlock<B>> blocks;
  LayerNorm<B> norm;

  /// Throws as GptConfig::check does.
  Gpt(B& backend, const GptConfig& config, Rng& rng)
      : Gpt(backend, config, rng, Initializer::normal(0, 0.02),
            Initializer::normal(0, 0.02 / std::sqrt(2 * static_cast<double>(config.layers)))) {}
  /// Weights of 0 for load_state: drawing those of a large model takes seconds.
  static Gpt blank(B& backend, const GptConfig& config) {
    Rng rng(0);  // dropout's
    return {backend, config, rng, Initializer::zeros(), Initializer::zeros()};
  }
  const GptConfig& config() const { return config_; }

  void visit(Visitor<B>& v) override {
    v.child("tokens", tokens);
    v.child("positions", positions);
    for (std::size_t i = 0; i < blocks.size(); ++i) v.child("blocks." + std::to_string(i), blocks[i]);
    v.child("norm", norm);
    v.child("dropout", dropout_);
  }

  /// # Shapes: ids integer [N, T], T at most `context` -> [N, T, dim]
  /// Throws ShapeError for another rank, ValueError for more positions than the context has.
  Tensor<B> features(const Tensor<B>& ids) {
    Tensor<B> x = embedded(ids, nullptr);
    for (TransformerBlock<B>& block : blocks) x = block.forward(x);
    return norm.forward(x);
  }
  /// The same for positions that follow those in the cache, which takes them in. Records no gradients.
  Tensor<B> features(const Tensor<B>& ids, KvCache<B>& cache) {
    const NoGrad no_grad;
    return norm.forward(unnormed(ids, cache));
  }
  /// The scores of what follows the last of the ids; the cache takes them in. # Shapes: ids integer [N, T] ->
  /// [N, vocab]
  Tensor<B> next_scores(const Tensor<B>& ids, KvCache<B>& cache) {
    const NoGrad no_grad;
    // Only the last position is projected: over all of them the scores would fill gigabytes.
    const Tensor<B> last = select(unnormed(ids, cache), 1, ids.size(1) - 1);
    if (!cache.is_on_device()) return project(norm.forward(last));
    const Tensor<B> all = fused_linear(last, tokens.weight, FusedParts<B>{&norm});
    return slice(all, -1, 0, config_.vocab);
  }
  /// The scores of all tokens to come next, from features. # Shapes: x [..., dim] -> [..., vocab]
  Tensor<B> project(const Tensor<B>& x) { return slice(linear(x, tokens.weight), -1, 0, config_.vocab); }
  /// # Shapes: ids integer [N, T] -> [N, T, vocab]
  Tensor<B> logits(const Tensor<B>& ids) { return project(features(ids)); }
  Tensor<B> logits(const Tensor<B>& ids, KvCache<B>& cache) { return project(features(ids, cache)); }
  /// The mean cross entropy. # Shapes: ids, targets integer [N, T] -> []
  Tensor<B> loss(const Tensor<B>& ids, const Tensor<B>& targets) {
    return linear_cross_entropy(features(ids), tokens.weight, targets,
                                CrossEntropyConfig{}.with_classes(config_.vocab));
  }

  /// A cache for `batch` texts of up to `capacity` positions. Throws ValueError if that is more than the
  /// context. On an Autocast it has that one's 16-bit dtype.
  KvCache<B> make_cache(std::int64_t batch, std::int64_t capacity) {
    check_positions(capacity);
    B backend = tokens.weight.backend();
    DType dtype = config_.dtype;
    if constexpr (requires { detail::kernel_backend(backend).lowered_dtype(); }) {
      if (dtype == DType::f32) dtype = detail::kernel_backend(backend).lowered_dtype();
    }
    return {
        backend,
        KvCacheConfig{config_.layers, batch, config_.heads, capacity, config_.dim / config_.heads}.with_dtype(
            dtype)};
  }

 private:
  Gpt(B& backend, const GptConfig& config, Rng& rng, const Initializer& init,
      const Initializer& residual_init)
      : tokens(backend, table(config, config.padded_vocab(), init), rng),
        positions(backend, table(config, config.context, init), rng),
        norm(backend, NormConfig{config.dim}.with_dtype(config.dtype)),
        config_(config),
        dropout_(config.dropout, rng) {
    const auto block = TransformerBlockConfig{config.dim, config.heads}
                           .with_causal(true)
                           .with_dropout(config.dropout)
                           .with_dtype(config.dtype)
                           .with_init(init)
                           .with_residual_init(residual_init);
    for (std::int64_t i = 0; i < config.layers; ++i) blocks.emplace_back(backend, block, rng);
  }
  static EmbeddingConfig table(const GptConfig& config, std::int64_t rows, const Initializer& init) {
    config.check();
    return EmbeddingConfig{rows, config.dim}.with_dtype(config.dtype).with_init(init);
  }
  void check_positions(std::int64_t count) const {
    if (count > config_.context)
      throw ValueError("[Gpt] " + std::to_string(count) + " positions: the model's context has " +
                       std::to_string(config_.context));
  }
  Tensor<B> embedded(const Tensor<B>& ids, const KvCache<B>* cache) {
    detail::check_rank("Gpt", "ids", ids.shape(), 2);
    const std::int64_t count = ids.size(1);
    check_positions(count + (cache ? cache->length() : 0));
    const Tensor<B> at = cache ? cache->next_positions(count) : arange(ids.backend(), count);
    return dropout_.forward(tokens.forward(ids) + positions.forward(at));
  }
  /// The residual stream behind the last block.
  Tensor<B> unnormed(const Tensor<B>& ids, KvCache<B>& cache) {
    Tensor<B> x = embedded(ids, &cache);
    for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i].forward(x, cache, i);
    cache.advance(ids.size(1));
    return x;
  }

  GptConfig config_;
  Dropout<B> dropout_;
};

}  // namespace ferrite::nn
