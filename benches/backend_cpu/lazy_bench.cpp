// Chains of ops as one kernel: Lazy<Cpu> beside Cpu, in turn. `ratio` is how many times as fast the chain is.
#include "fused_chain.hpp"

namespace ferrite::bench {
namespace {

constexpr std::int64_t elements = std::int64_t{1} << 24;

const auto draw = [](auto& b, Rng& rng) { return std::vector{randn(b, {elements}, rng)}; };

/// Eight ops, one tensor; the ratio should be 4 or more.
void chain8(benchmark::State& state) {
  bench_fused(state, draw, [](const auto& in) {
    const auto& x = in[0];
    return -minimum(relu(abs(x * 1.1 + 0.3) - 0.2) * x, 3);
  });
}
void chain8_bf16(benchmark::State& state) {
  bench_fused(
      state, [](auto& b, Rng& rng) { return std::vector{randn(b, {elements}, rng, 0, 1, DType::bf16)}; },
      [](const auto& in) {
        const auto& x = in[0];
        return -minimum(relu(abs(x * 1.1 + 0.3) - 0.2) * x, 3);
      });
}
void bias_gelu(benchmark::State& state) {
  bench_fused(
      state,
      [](auto& b, Rng& rng) {
        return std::vector{randn(b, {elements / 1024, 1024}, rng), randn(b, {1024}, rng)};
      },
      [](const auto& in) { return gelu(in[0] + in[1]) * 0.5 + in[0]; });
}
void sum_of_squares(benchmark::State& state) {
  bench_fused(
      state,
      [](auto& b, Rng& rng) {
        return std::vector{randn(b, {elements / 1024, 1024}, rng)};
      },
      [](const auto& in) { return sum(square(in[0] * 1.1 + 0.3), {1}); });
}
/// What recording costs: four ops on eight elements.
void small_chain(benchmark::State& state) {
  bench_fused(
      state, [](auto& b, Rng& rng) { return std::vector{randn(b, {8}, rng)}; },
      [](const auto& in) { return relu(in[0] * 2 + 1) - in[0]; });
}

BENCHMARK(chain8)->Apply(rounds_of);
BENCHMARK(chain8_bf16)->Apply(rounds_of);
BENCHMARK(bias_gelu)->Apply(rounds_of);
BENCHMARK(sum_of_squares)->Apply(rounds_of);
BENCHMARK(small_chain)->Apply(rounds_of);

}  // namespace
}  // namespace ferrite::bench
