// Plan: what a training of GPT-2 on many GPUs would take, before anybody rents them. From rates that were
// measured on one GPU and figures of the links follow the time of a step, the memory and the scaling.
//
//   const dist::Plan plan = dist::plan_training(dist::PlanConfig{}.with_gpus(64));
//   plan.seconds, plan.tokens_per_second, plan.bytes
//
// It is a model of the machine, not a measurement: docs/distributed.md says how far it was from published
// figures of 8 GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/nn/gpt_config.hpp"

namespace ferrite::dist {

/// Peak of 16-bit products in FLOP/s, of its memory in bytes/s, and how large that is.
struct GpuFacts {
  std::string name;
  double products = 0, bandwidth = 0, memory = 0;
};
/// What a GPU sends and receives at the same time in a collective, in bytes/s, and what a step of one takes.
struct LinkFacts {
  std::string name;
  double bandwidth = 0, latency = 0;
};
FERRITE_API const std::vector<GpuFacts>& known_gpus();
FERRITE_API const std::vector<LinkFacts>& known_links();

/// data_parallel: every rank has all states. zero1: each rank has the states of the optimiser for a part of
/// the parameters; gradients are reduced to that part, and the new weights are gathered.
enum class Sharding : std::uint8_t { data_parallel, zero1 };
FERRITE_API std::string_view to_string(Sharding sharding);

struct FERRITE_API PlanConfig {
  nn::GptConfig model = nn::GptConfig::gpt2();
  std::string gpu = "h100";
  std::int64_t gpus = 8;
  std::int64_t gpus_per_node = 8;
  /// Inside a node, and between nodes.
  std::string link = "nvlink", network = "ib";
  /// Rows of a micro-batch on each GPU, their tokens, and micro-batches of a step.
  std::int64_t batch = 64, length = 1024, micro_batches = 1;
  Sharding sharding = Sharding::data_parallel;
  /// Bytes of a gradient when it is sent: 4, or 2 as llm.c does.
  int gradient_bytes = 4;

  PlanConfig with_model(const nn::GptConfig& v) const { return with(&PlanConfig::model, v); }
  PlanConfig with_gpu(const std::string& v) const { return with(&PlanConfig::gpu, v); }
  PlanConfig with_gpus(std::int64_t v) const { return with(&PlanConfig::gpus, v); }
  PlanConfig with_gpus_per_node(std::int64_t v) const { return with(&PlanConfig::gpus_per_node, v); }
  PlanConfig with_links(const std::string& inside, const std::string& between) const {
    return with(&PlanConfig::link, inside).with(&PlanConfig::network, between);
  }
  PlanConfig with_batch(std::int64_t rows, std::int64_t tokens) const {
    return with(&PlanConfig::batch, rows).with(&PlanConfig::length, tokens);
  }
  PlanConfig with_micro_batches(std::int64_t v) const { return with(&PlanConfig::micro_batches, v); }
  PlanConfig with_sharding(Sharding v) const { return with(&PlanConfig::sharding, v); }
  PlanConfig with_gradient_bytes(int v) const { return with(&PlanConfig::gradient_bytes, v); }

  /// Throws ValueError that names the rule, and for a GPU or link that is not known which there are.
  void check() const;

 private:
  template <class T>
  PlanConfig with(T PlanConfig::*member, std::type_identity_t<T> value) const {
    return ferrite::detail::with(*this, member, std::move(value));
  }
};

/// Of one step, on each GPU.
struct Plan {
  double products = 0;           ///< seconds of matrix products and attention
  double elements = 0;           ///< seconds of everything else, which waits for memory
  double update = 0;             ///< seconds of the optimiser
  double sent = 0;               ///< seconds of communication
  double exposed = 0;            ///< seconds of it that no computation hides
  double seconds = 0;            ///< of the whole step
  double tokens_per_second = 0;  ///< of all GPUs
  double scaling = 0;            ///< that, as a share of so many times one GPU
  double bytes = 0;              ///< of memory
  bool fits = false;             ///< into the memory of the GPU
};

/// Throws as PlanConfig::check.
FERRITE_API Plan plan_training(const PlanConfig& config);

}  // namespace ferrite::dist
