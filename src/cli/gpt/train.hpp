// What `ferrite gpt train` is asked to do, and the training itself for one kind of arithmetic.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/training_ranks.hpp"
#include "ferrite/nn/gpt.hpp"
#include "ferrite/stacks/any_backend.hpp"

namespace ferrite::cli::gpt {

struct TrainOptions {
  std::vector<std::string> data, valid;
  std::string dtype;                // of bare tokens
  std::optional<std::string> from;  // a model file with the first weights; none: they are drawn
  std::string out, backend = "auto", precision = "auto", tokenizer, prompt;
  nn::GptConfig model;
  std::int64_t batch = 8, length = 0, micro_batches = 1, steps = 0, warmup = -1;
  std::int64_t report_every = 10, evaluate_every = 250, evaluate_batches = 20, checkpoint_every = 500,
               sample_every = 0;
  double lr = 6e-4, weight_decay = 0.1, clip = 1;
  std::uint64_t seed = 1;
  bool resume = false, quiet = false, json = false, fastest = false, shard_optimizer = false;
};

/// "gpt2", "gpt2-medium", "gpt2-large" or "gpt2-xl".
nn::GptConfig config_of_size(std::string_view size);

/// Trains with parameters in f32. Products are in f32 too, or of operands that are rounded to bf16 or f16.
/// Returns an exit code.
int train_f32(const AnyBackend& backend, TrainingRanks& ranks, const TrainOptions& options);
int train_16bit(const AnyBackend& backend, TrainingRanks& ranks, DType dtype, const TrainOptions& options);

/// Bytes of parameters, gradients and moments; and those that one row of a batch adds while it is trained.
/// Estimates.
struct TrainMemory {
  double fixed, per_row;
};
TrainMemory estimate_memory(const TrainOptions& options, bool is_16bit);
/// Why a batch does not fit on the backend, and what would. `command`: "gpt train", or another that trains
/// and has no --micro-batches.
std::string too_large(std::string_view command, const TrainOptions& options, const AnyBackend& backend,
                      bool is_16bit, const std::string& reason);

}  // namespace ferrite::cli::gpt
