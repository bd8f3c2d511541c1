// Attention in one kernel beside its composition, forward and backward.
#include "ferrite/ops/attention.hpp"
#include "random_tensor.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {
namespace {

struct Problem {
  Cpu cpu;
  op::Attention op;
  TensorList in;

  Problem(benchmark::State& state, bool causal) {
    const std::int64_t batch = state.range(0), heads = state.range(1), length = state.range(2),
                       depth = state.range(3);
    op = {causal, 1.0 / std::sqrt(static_cast<double>(depth))};
    for (std::uint64_t i = 0; i < 3; ++i) in.push_back(random_tensor(cpu, {batch, heads, length, depth}, i));
  }
};

void attention(benchmark::State& state, bool causal) {
  Problem p(state, causal);
  side_by_side(
      state, [&] { fused(p.op, p.in); }, [&] { composed(p.cpu, p.op, p.in); });
}

void attention_backward(benchmark::State& state, bool causal) {
  Problem p(state, causal);
  const Tensors<Cpu> out = fused(p.op, p.in);
  const op::AttentionBackward op{p.op.causal, p.op.scale};
  const TensorList in = {random_tensor(p.cpu, p.in[0].shape(), 4), p.in[0], p.in[1], p.in[2], out[0], out[1]};
  side_by_side(
      state, [&] { fused(op, in); }, [&] { composed(p.cpu, op, in); });
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "heads", "length", "depth"});
  b->Iterations(rounds)->UseManualTime()->Unit(benchmark::kMicrosecond);
  b->Args({8, 8, 128, 32})->Args({8, 4, 128, 64})->Args({1, 8, 1024, 64})->Args({1, 1, 2048, 64});
}

BENCHMARK_CAPTURE(attention, full, false)->Apply(shapes);
BENCHMARK_CAPTURE(attention, causal, true)->Apply(shapes);
BENCHMARK_CAPTURE(attention_backward, full, false)->Apply(shapes);
BENCHMARK_CAPTURE(attention_backward, causal, true)->Apply(shapes);

}  // namespace
}  // namespace ferrite::bench
