// quantize: the linear layers of a model in 8 bits, for inference.
#pragma once

#include "ferrite/nn/linear.hpp"

namespace ferrite::nn {

/// Rounds the weights of all Linear layers of a model to 8 bits (Linear::quantize). Embeddings stay as they
/// are; Gpt::quantize has its tables too. Copies of the model keep their weights.
template <class B>
void quantize(Module<B>& model) {
  struct Quantizer final : Visitor<B> {
    void on_module(Module<B>& part) override {
      if (auto* linear = dynamic_cast<Linear<B>*>(&part)) linear->quantize();
    }
  } quantizer;
  if (auto* linear = dynamic_cast<Linear<B>*>(&model)) return linear->quantize();
  model.visit(quantizer);
}

}  // namespace ferrite::nn
