// Chains of many kinds as one kernel, Lazy<Cpu> beside Cpu: lengths, operands, shapes, strides and dtypes as
// models have them. lazy_bench measures the chains that tile programs were written for; these were chosen
// afterwards, to see what else gains by them.
#include "fused_chain.hpp"

namespace ferrite::bench {
namespace {

constexpr std::int64_t million = 1 << 20;

/// So many tensors of one shape.
auto tensors(int count, Shape shape, DType dtype = DType::f32) {
  return [=](auto& b, Rng& rng) {
    std::vector<decltype(randn(b, shape, rng))> in;
    for (int i = 0; i < count; ++i) in.push_back(randn(b, shape, rng, 0, 1, dtype));
    return in;
  };
}

// Lengths.
void axpy(benchmark::State& state) {
  bench_fused(state, tensors(2, {million}), [](const auto& in) { return in[0] * 1.7 + in[1]; });
}
void four_in_cache(benchmark::State& state) {
  bench_fused(state, tensors(2, {40'000}),
              [](const auto& in) { return (in[0] + in[1]) * in[0] - in[1] / 3; });
}
void horner_sixteen(benchmark::State& state) {
  bench_fused(state, tensors(1, {million}), [](const auto& in) {
    auto y = in[0] * 0.11 + 0.9;
    for (int k = 0; k < 7; ++k) y = y * in[0] * 0.1 + (0.5 - 0.1 * k);
    return y;
  });
}
/// The step of an optimiser.
void moments(benchmark::State& state) {
  bench_fused(state, tensors(4, {million}), [](const auto& in) {
    const auto m = in[0] * 0.9 + in[1] * 0.1;
    const auto v = square(in[2]) * 0.999 + square(in[1]) * 0.001;
    return in[3] - m / (sqrt(v) + 1e-8) * 0.01;
  });
}

// Functions and choices.
void gated_tanh(benchmark::State& state) {
  bench_fused(state, tensors(2, {million}), [](const auto& in) { return tanh(in[0]) * sigmoid(in[1]); });
}
void log_of_exp(benchmark::State& state) {
  bench_fused(state, tensors(2, {million}),
              [](const auto& in) { return log(exp(in[0]) + exp(in[1])) - in[0]; });
}
void clamped(benchmark::State& state) {
  bench_fused(state, tensors(1, {million}),
              [](const auto& in) { return clamp(in[0] * 2 - 0.3, -1, 1) * 0.5; });
}
void rectified(benchmark::State& state) {
  bench_fused(state, tensors(2, {million}), [](const auto& in) { return leaky_relu(in[0]) + relu(in[1]); });
}
void huber(benchmark::State& state) {
  bench_fused(state, tensors(2, {million}), [](const auto& in) {
    const auto d = abs(in[0] - in[1]);
    return where(d < 1, square(d) * 0.5, d - 0.5);
  });
}
void larger_of_two(benchmark::State& state) {
  bench_fused(state, tensors(3, {million}),
              [](const auto& in) { return maximum(in[0], in[1]) - minimum(in[1], in[2]); });
}
void lengths(benchmark::State& state) {
  bench_fused(state, tensors(2, {million}),
              [](const auto& in) { return sqrt(square(in[0]) + square(in[1])) / (abs(in[0]) + 1); });
}

// Shapes and strides.
void scaled_rows(benchmark::State& state) {  // by row and by column; rows are no whole number of tiles
  bench_fused(
      state,
      [](auto& b, Rng& rng) {
        return std::vector{randn(b, {1000, 1000}, rng), randn(b, {1000, 1}, rng), randn(b, {1000}, rng),
                           randn(b, {1000}, rng)};
      },
      [](const auto& in) { return (in[0] - in[1]) * in[2] + in[3]; });
}
void narrow_rows(benchmark::State& state) {
  bench_fused(
      state,
      [](auto& b, Rng& rng) {
        return std::vector{randn(b, {50'000, 20}, rng), randn(b, {20}, rng)};
      },
      [](const auto& in) { return (in[0] - in[1]) * 0.5 + in[0]; });
}
void other_layouts(benchmark::State& state) {
  bench_fused(
      state,
      [](auto& b, Rng& rng) {
        return std::vector{randn(b, {1024, 1024}, rng)};
      },
      [](const auto& in) { return (in[0] + transpose(in[0], 0, 1)) * 0.5 - in[0]; });
}
void every_second(benchmark::State& state) {
  bench_fused(
      state,
      [](auto& b, Rng& rng) {
        return std::vector{randn(b, {1024, 2048}, rng)};
      },
      [](const auto& in) {
        const auto x = slice(in[0], 1, 0, 2048, 2);
        return (x * x + 0.5) * 0.5 - x;
      });
}

// Dtypes.
template <DType dtype>
void four_of(benchmark::State& state) {
  bench_fused(state, tensors(2, {million}, dtype),
              [](const auto& in) { return relu((in[0] + in[1]) * 0.5) - in[1]; });
}

// Reductions.
void squared_distance(benchmark::State& state) {
  bench_fused(state, tensors(2, {512, 2048}), [](const auto& in) { return sum(square(in[0] - in[1]), {1}); });
}
void column_sums(benchmark::State& state) {
  bench_fused(state, tensors(2, {2048, 512}), [](const auto& in) { return sum(in[0] * in[1], {0}); });
}
void sum_of_exp(benchmark::State& state) {
  bench_fused(state, tensors(1, {512, 2048}), [](const auto& in) { return sum(exp(in[0] * 0.5), {1}); });
}
void short_rows(benchmark::State& state) {
  bench_fused(state, tensors(2, {10'000, 100}), [](const auto& in) { return sum(abs(in[0] - in[1]), {1}); });
}
void largest_of_all(benchmark::State& state) {
  bench_fused(state, tensors(1, {million}), [](const auto& in) { return max(abs(in[0] * 0.5 - 0.1)); });
}

BENCHMARK(axpy)->Apply(rounds_of);
BENCHMARK(four_in_cache)->Apply(rounds_of);
BENCHMARK(horner_sixteen)->Apply(rounds_of);
BENCHMARK(moments)->Apply(rounds_of);
BENCHMARK(gated_tanh)->Apply(rounds_of);
BENCHMARK(log_of_exp)->Apply(rounds_of);
BENCHMARK(clamped)->Apply(rounds_of);
BENCHMARK(rectified)->Apply(rounds_of);
BENCHMARK(huber)->Apply(rounds_of);
BENCHMARK(larger_of_two)->Apply(rounds_of);
BENCHMARK(lengths)->Apply(rounds_of);
BENCHMARK(scaled_rows)->Apply(rounds_of);
BENCHMARK(narrow_rows)->Apply(rounds_of);
BENCHMARK(other_layouts)->Apply(rounds_of);
BENCHMARK(every_second)->Apply(rounds_of);
BENCHMARK(four_of<DType::bf16>)->Apply(rounds_of);
BENCHMARK(four_of<DType::f16>)->Apply(rounds_of);
BENCHMARK(four_of<DType::f64>)->Apply(rounds_of);
BENCHMARK(squared_distance)->Apply(rounds_of);
BENCHMARK(column_sums)->Apply(rounds_of);
BENCHMARK(sum_of_exp)->Apply(rounds_of);
BENCHMARK(short_rows)->Apply(rounds_of);
BENCHMARK(largest_of_all)->Apply(rounds_of);

}  // namespace
}  // namespace ferrite::bench
