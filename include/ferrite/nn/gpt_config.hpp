// GptConfig: what a language model is made of. GPT-2 by default; llama() has the parts of a Llama.
#pragma once

#include "ferrite/nn/transformer.hpp"

namespace ferrite::nn {

/// The sizes and parts of a Gpt. The defaults are those of the smallest GPT-2.
struct FERRITE_API GptConfig {
  /// Tokens that there are.
  std::int64_t vocab = 50257;
  /// Most positions of a text that the model sees at once.
  std::int64_t context = 1024;
  std::int64_t layers = 12;
  /// Of each layer; must divide dim, unless head_width is given.
  std::int64_t heads = 12;
  /// Features of a position.
  std::int64_t dim = 768;
  /// The probability with which elements of the embeddings and of every branch are zeroed in training.
  double dropout = 0;
  DType dtype = DType::f32;
  /// The matrices but the positions' are i8 with a scale for each row: for inference (see Gpt::quantize).
  bool quantized = false;

  // The parts in which models differ, of every block.
  /// Inside the feed-forward. 0: 4 dim.
  std::int64_t hidden = 0;
  Activation activation = Activation::gelu;
  /// A second projection gates the activation: SwiGLU with Activation::silu.
  bool gated = false;
  NormKind norm = NormKind::layer;
  double eps = 1e-5;
  /// Heads of keys and values, which heads of queries share; must divide heads. 0: as many as heads.
  std::int64_t kv_heads = 0;
  /// Elements of a head. 0: dim / heads.
  std::int64_t head_width = 0;
  /// A position sees only the last `window` ones. 0: all.
  std::int64_t window = 0;
  /// Positions are rotations of queries and keys. Absent: positions have a table of embeddings.
  std::optional<RopeConfig> rope = std::nullopt;
  /// Of all linear layers.
  bool bias = true;
  /// Of the projection to queries, keys and values. Absent: as `bias` says.
  std::optional<bool> qkv_bias = std::nullopt;
  /// The table of the token embeddings is also the output projection.
  bool tied = true;

  static GptConfig gpt2() { return {}; }
  static GptConfig gpt2_medium() { return gpt2().with_layers(24).with_heads(16).with_dim(1024); }
  static GptConfig gpt2_large() { return gpt2().with_layers(36).with_heads(20).with_dim(1280); }
  static GptConfig gpt2_xl() { return gpt2().with_layers(48).with_heads(25).with_dim(1600); }
  /// The parts of a Llama, and the sizes of the smallest GPT-2: rms norms, rotations, a gated feed-forward of
  /// silu whose three matrices have as many elements as two of 4 dim, an output projection of its own, no
  /// biases.
  static GptConfig llama() {
    return gpt2()
        .with_norm(NormKind::rms)
        .with_rope(RopeConfig{})
        .with_activation(Activation::silu)
        .with_gated(true)
        .with_hidden(2048)
        .with_bias(false)
        .with_tied(false);
  }
  /// Llama 3.2 1B.
  static GptConfig llama3_1b() {
    const RopeScaling scaling{RopeScaling::Kind::llama3, 32, 1, 4, 8192};
    return llama()
        .with_vocab(128256)
        .with_context(131072)
        .with_layers(16)
        .with_heads(32)
        .with_kv_heads(8)
        .with_dim(2048)
        .with_hidden(8192)
        .with_tied(true)
        .with_rope(RopeConfig{500000}.with_scaling(scaling));
  }

  GptConfig with_vocab(std::int64_t v) const { return detail::with(*this, &GptConfig::vocab, v); }
  GptConfig with_context(std::int64_t v) const { return detail::with(*this, &GptConfig::context, v); }
  GptConfig with_layers(std::int64_t v) const { return detail::with(*this, &GptConfig::layers, v); }
  GptConfig with_heads(std::int64_t v) const { return detail::with(*this, &GptConfig::heads, v); }
  GptConfig with_dim(std::int64_t v) const { return detail::with(*this, &GptConfig::dim, v); }
  GptConfig with_dropout(double v) const { return detail::with(*this, &GptConfig::dropout, v); }
  GptConfig with_dtype(DType v) const { return detail::with(*this, &GptConfig::dtype, v); }
  GptConfig with_quantized(bool v) const { return detail::with(*this, &GptConfig::quantized, v); }
  GptConfig with_hidden(std::int64_t v) const { return detail::with(*this, &GptConfig::hidden, v); }
  GptConfig with_activation(Activation v) const { return detail::with(*this, &GptConfig::activation, v); }
  GptConfig with_gated(bool v) const { return detail::with(*this, &GptConfig::gated, v); }
  GptConfig with_norm(NormKind v) const { return detail::with(*this, &GptConfig::norm, v); }
  GptConfig with_eps(double v) const { return detail::with(*this, &GptConfig::eps, v); }
  GptConfig with_kv_heads(std::int64_t v) const { return detail::with(*this, &GptConfig::kv_heads, v); }
  GptConfig with_head_width(std::int64_t v) const { return detail::with(*this, &GptConfig::head_width, v); }
  GptConfig with_window(std::int64_t v) const { return detail::with(*this, &GptConfig::window, v); }
  GptConfig with_rope(std::optional<RopeConfig> v) const { return detail::with(*this, &GptConfig::rope, v); }
  GptConfig with_bias(bool v) const { return detail::with(*this, &GptConfig::bias, v); }
  GptConfig with_qkv_bias(std::optional<bool> v) const {
    return detail::with(*this, &GptConfig::qkv_bias, v);
  }
  GptConfig with_tied(bool v) const { return detail::with(*this, &GptConfig::tied, v); }

  // The members that may be 0, as they are meant.
  std::int64_t hidden_width() const { return hidden > 0 ? hidden : 4 * dim; }
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t width_of_head() const { return head_width > 0 ? head_width : dim / heads; }
  /// Of every block, with the model's initial values left open.
  TransformerBlockConfig block() const;

  /// Rows of the token table: a multiple of 128, which products like. Those beyond the vocabulary belong to
  /// no token: their scores are cut off, and they get no gradient.
  std::int64_t padded_vocab() const { return (vocab + 127) / 128 * 128; }
  /// Without the rows that pad the vocabulary: the count that is published.
  std::int64_t parameter_count() const;

  /// Throws ValueError for sizes below 1 (below 0 where 0 has a meaning), heads that do not divide what they
  /// must, an odd width of heads with rope, a dropout outside [0, 1], an eps that is not above 0, a dtype
  /// that is not floating, and as RopeConfig::check does.
  void check() const;
  /// A JSON object with the members up to dtype, and those of the others that are not GPT-2's. Files of
  /// models hold it in their metadata (train/gpt_file.hpp).
  std::string to_json() const;
  /// Throws ParseError, in which `name` stands for the source, unless the text is what to_json writes and
  /// passes `check`.
  static GptConfig from_json(std::string_view text, std::string_view name);

  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

}  // namespace ferrite::nn
