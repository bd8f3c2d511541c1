// ferrite gpt bench --decode: how fast a model writes here.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/gpt/bench.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/nn/generate.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli::gpt {
namespace {

using Clock = std::chrono::steady_clock;

/// The first tokens, at most half of them, are not measured: until there are a few, steps are recorded, and
/// the host runs ahead.
std::int64_t unmeasured_of(std::int64_t tokens) { return std::min<std::int64_t>(32, tokens / 2); }

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace

DecodeResult bench_decode(const AnyBackend& on, const BenchOptions& o, std::int64_t batch, DType dtype) {
  const std::int64_t tokens = o.length - o.prompt_length;
  if (tokens < 2)
    throw ValueError(
        fmt::format("[gpt bench] a prompt of {} tokens and texts of {}: leave room for two more tokens",
                    o.prompt_length, o.length));
  const std::int64_t unmeasured = unmeasured_of(tokens);
  AnyBackend backend = on;
  Rng rng(o.seed);
  nn::Gpt<AnyBackend> model(backend, o.model.with_dtype(dtype), rng);
  if (o.int8) model.quantize();
  std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < prompts.size(); ++i)
    for (std::int64_t k = 0; k < o.prompt_length; ++k)
      prompts[i].push_back(static_cast<std::int32_t>(
          integer_at({o.seed, i}, static_cast<std::uint64_t>(k), 0, o.model.vocab)));
  const auto config = nn::GenerateConfig{}.with_tokens(tokens).with_top_k(50).with_seed(o.seed);
  DecodeResult result{batch, tokens};
  const auto run = [&] {
    std::int64_t count = 0;
    Clock::time_point first;
    const auto start = Clock::now();
    nn::generate(model, prompts, config, [&](std::size_t text, std::int32_t) {
      if (text == 0 && ++count == unmeasured) first = Clock::now();
      return nn::Next::more;
    });
    const auto end = Clock::now();
    result.text_seconds = seconds_between(start, end);
    return seconds_between(first, end);
  };
  run();  // chooses the plans of products
  while (result.seconds < o.seconds) {
    result.seconds += run();
    result.measured += batch * (tokens - unmeasured);
  }
  result.peak_bytes = static_cast<double>(backend.memory_stats().peak);
  return result;
}

}  // namespace ferrite::cli::gpt
