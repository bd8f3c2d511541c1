// Gpt: language models of transformer blocks: GPT-2 (Radford et al., 2019) and, by its config, Llamas.
//
//   Rng rng(1);
//   nn::Gpt<B> model(backend, nn::GptConfig::gpt2(), rng);
//   const auto loss = model.loss(ids, targets);
//
// generate.hpp writes text with it.
#pragma once

#include "ferrite/nn/gpt_config.hpp"
#include "ferrite/nn/quantize.hpp"
#include "ferrite/ops/linear_cross_entropy.hpp"

namespace ferrite::nn {

/// Token embeddings, those of positions unless they are rotations, blocks, a norm, and the output projection.
/// Initialised as GPT-2: weights N(0, 0.02), those that are added to the residual stream divided
/// by sqrt(2 layers), biases 0.
template <class B>
class Gpt final : public Module<B> {
 public:
  Embedding<B> tokens;                    // [padded vocab, dim]
  std::optional<Embedding<B>> positions;  // [context, dim]
  std::vector<TransformerBlock<B>> blocks;
  Norm<B> norm;
  std::optional<Embedding<B>> head;  // [padded vocab, dim], unless that is `tokens`

  /// Throws as GptConfig::check does.
  Gpt(B& backend, const GptConfig& config, Rng& rng)
      : Gpt(backend, config, rng, Initializer::normal(0, 0.02),
            Initializer::normal(0, 0.02 / std::sqrt(2 * static_cast<double>(config.layers)))) {}
  /// Weights of 0 for load_state: drawing those of a large model takes seconds. `rng` is dropout's.
  static Gpt blank(B& backend, const GptConfig& config, Rng rng = Rng(0)) {
    return {backend, config, rng, Initializer::zeros(), Initializer::zeros()};
  }
  const GptConfig& config() const { return config_; }
  /// Rounds the matrices but the positions' to 8 bits, row by row (see quantize_rows): a quarter of the
  /// memory, on a CPU faster texts. What is left to train are biases, norms and positions. Once is enough.
  void quantize() {
    tokens.quantize();
    if (head) head->quantize();
    nn::quantize<B>(*this);
    config_.quantized = true;
  }

  void visit(Visitor<B>& v) override {
    v.child("tokens", tokens);
    if (positions) v.child("positions", *positions);
    for (std::size_t i = 0; i < blocks.size(); ++i) v.child("blocks." + std::to_string(i), blocks[i]);
    v.child("norm", norm);
    if (head) v.child("head", *head);
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
    const Tensor<B> all = fused_linear(last, output().weight, FusedParts<B>{&norm, output().scale});
    return slice(all, -1, 0, config_.vocab);
  }
  /// The scores of all tokens to come next, from features. # Shapes: x [..., dim] -> [..., vocab]
  Tensor<B> project(const Tensor<B>& x) { return slice(output().project(x), -1, 0, config_.vocab); }
  /// # Shapes: ids integer [N, T] -> [N, T, vocab]
  Tensor<B> logits(const Tensor<B>& ids) { return project(features(ids)); }
  Tensor<B> logits(const Tensor<B>& ids, KvCache<B>& cache) { return project(features(ids, cache)); }
  /// The mean cross entropy. # Shapes: ids, targets integer [N, T] -> []
  Tensor<B> loss(const Tensor<B>& ids, const Tensor<B>& targets) {
    return linear_cross_entropy(features(ids), output().table(), targets,
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
    const KvCacheConfig cache{config_.layers, batch, config_.key_heads(), capacity, config_.width_of_head()};
    return {backend, cache.with_dtype(dtype)};
  }

 private:
  Gpt(B& backend, const GptConfig& config, Rng& rng, const Initializer& init,
      const Initializer& residual_init)
      : tokens(backend, table(config, config.padded_vocab(), init), rng),
        positions(config.rope ? std::nullopt
                              : std::optional<Embedding<B>>(std::in_place, backend,
                                                            table(config, config.context, init), rng)),
        norm(backend, config.block().norm_config()),
        config_(config),
        dropout_(config.dropout, rng) {
    const auto block = config.block().with_init(init).with_residual_init(residual_init);
    if (config.quantized) tokens.quantize();
    for (std::int64_t i = 0; i < config.layers; ++i) {
      blocks.emplace_back(backend, block, rng);
      if (config.quantized) nn::quantize<B>(blocks.back());
    }
    if (config.tied) return;
    head.emplace(backend, table(config, config.padded_vocab(), init), rng);
    if (config.quantized) head->quantize();
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
    const Tensor<B> x = tokens.forward(ids);
    if (!positions) return dropout_.forward(x);
    const Tensor<B> at = cache ? cache->next_positions(count) : arange(ids.backend(), count);
    return dropout_.forward(x + positions->forward(at));
  }
  /// The residual stream after the last block.
  Tensor<B> unnormed(const Tensor<B>& ids, KvCache<B>& cache) {
    Tensor<B> x = embedded(ids, &cache);
    for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i].forward(x, cache, i);
    cache.advance(ids.size(1));
    return x;
  }
  Embedding<B>& output() { return head ? *head : tokens; }

  GptConfig config_;
  Dropout<B> dropout_;
};

}  // namespace ferrite::nn
