// What `ferrite gpt bench` measures, and the measurement itself for one kind of arithmetic.
#pragma once

#include <string>
#include <vector>

#include "ferrite/dist/group.hpp"
#include "ferrite/nn/gpt.hpp"
#include "ferrite/stacks/any_backend.hpp"

namespace ferrite::cli::gpt {

struct BenchOptions {
  nn::GptConfig model;
  std::vector<std::int64_t> batches = {4};
  std::vector<std::string> data;  // token files; empty: one batch of random tokens
  std::string dtype;              // of bare tokens
  std::int64_t length = 0, prompt_length = 16;
  double seconds = 5;
  std::uint64_t seed = 1;
  bool int8 = false;             // weights of a model that writes
  dist::Group* group = nullptr;  // of ranks that train together
  bool shard_optimizer = false;
};

struct BenchResult {
  std::int64_t batch = 0, steps = 0;
  double seconds = 0, warmup_seconds = 0, loss = 0, peak_bytes = 0;
};

/// Of texts that a model writes: `measured` tokens in `seconds`; a whole text took `text_seconds` at the end.
struct DecodeResult {
  std::int64_t batch = 0, tokens = 0, measured = 0;
  double seconds = 0, text_seconds = 0, peak_bytes = 0;
};

BenchResult bench_f32(const AnyBackend& backend, const BenchOptions& options, std::int64_t batch);
BenchResult bench_bf16(const AnyBackend& backend, const BenchOptions& options, std::int64_t batch);
/// Texts of options.length positions, prompts included. ValueError for too few tokens to measure.
DecodeResult bench_decode(const AnyBackend& backend, const BenchOptions& options, std::int64_t batch,
                          DType dtype);

}  // namespace ferrite::cli::gpt
