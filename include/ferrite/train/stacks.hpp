// Layers, optimisers and trainers, compiled once in the library for the CPU and for a backend chosen at run
// time, so that a user's program only refers to them. Other stacks work too; they are compiled where they are
// used.
#pragma once

#include "ferrite/nn/conv.hpp"
#include "ferrite/nn/gpt.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/nn/sequential.hpp"
#include "ferrite/nn/transformer.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/optim/muon.hpp"
#include "ferrite/optim/sgd.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/train/trainer.hpp"

#define FERRITE_LAYERS(linkage, B)   \
  linkage nn::Module<B>;             \
  linkage nn::Linear<B>;             \
  linkage nn::Embedding<B>;          \
  linkage nn::LayerNorm<B>;          \
  linkage nn::RmsNorm<B>;            \
  linkage nn::Norm<B>;               \
  linkage nn::BatchNorm2d<B>;        \
  linkage nn::Conv2d<B>;             \
  linkage nn::MaxPool2d<B>;          \
  linkage nn::AvgPool2d<B>;          \
  linkage nn::Activate<B>;           \
  linkage nn::Flatten<B>;            \
  linkage nn::Apply<B>;              \
  linkage nn::Dropout<B>;            \
  linkage nn::Sequential<B>;         \
  linkage nn::MultiHeadAttention<B>; \
  linkage nn::FeedForward<B>;        \
  linkage nn::TransformerBlock<B>;   \
  linkage nn::KvCache<B>;            \
  linkage nn::Gpt<B>;

#define FERRITE_TRAINING(linkage, B)                \
  FERRITE_LAYERS(linkage, B)                        \
  linkage optim::Optimizer<B>;                      \
  linkage optim::Sgd<B>;                            \
  linkage optim::AdamFamily<B, optim::AdamConfig>;  \
  linkage optim::AdamFamily<B, optim::AdamWConfig>; \
  linkage optim::Muon<B>;                           \
  linkage train::MeanLoss<B>;                       \
  linkage train::Accuracy<B>;                       \
  linkage train::Trainer<B>;

namespace ferrite {

FERRITE_LAYERS(extern template class FERRITE_API, Cpu)
FERRITE_LAYERS(extern template class FERRITE_API, AnyBackend)
FERRITE_TRAINING(extern template class FERRITE_API, Autodiff<Cpu>)
FERRITE_TRAINING(extern template class FERRITE_API, Autodiff<AnyBackend>)

}  // namespace ferrite
