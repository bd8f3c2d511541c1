// Small configs of language models.
#pragma once

#include "ferrite/nn/gpt.hpp"

namespace ferrite::nn {

inline GptConfig small() {
  return GptConfig{}.with_vocab(50).with_context(16).with_layers(2).with_heads(2).with_dim(8);
}

/// All parts that differ from GPT-2's.
inline GptConfig small_llama() {
  return GptConfig::llama()
      .with_vocab(50)
      .with_context(16)
      .with_layers(2)
      .with_heads(4)
      .with_kv_heads(2)
      .with_dim(16)
      .with_hidden(20);
}

}  // namespace ferrite::nn
