// layer_norm and rms_norm, forward and backward, 4096 x 1024.
#include "ferrite/ops/rms_norm.hpp"
#include "memory_bound.hpp"

namespace ferrite::bench {
namespace {

Tensor<Cpu> channels(Cpu& cpu, std::uint64_t seed) { return random_tensor(cpu, {columns}, seed); }

void layer_norm_forward(benchmark::State& state, DType dtype) {
  Cpu cpu;
  compare(state, cpu, op::LayerNorm{}, [&](std::uint64_t seed) {
    return TensorList{cast(random_tensor(cpu, {rows, columns}, seed), dtype), channels(cpu, 1),
                      channels(cpu, 2)};
  });
}

void layer_norm_backward(benchmark::State& state, DType dtype) {
  Cpu cpu;
  compare(state, cpu, op::LayerNormBackward{}, [&](std::uint64_t seed) {
    const Tensor<Cpu> x = cast(random_tensor(cpu, {rows, columns}, seed), dtype), weight = channels(cpu, 1);
    const Tensors<Cpu> y = eval_all(op::LayerNorm{}, x, weight, weight);
    return TensorList{cast(random_tensor(cpu, {rows, columns}, seed + 100), dtype), x, weight, y[1], y[2]};
  });
}

void rms_norm_forward(benchmark::State& state) {
  Cpu cpu;
  compare(state, cpu, op::RmsNorm{}, [&](std::uint64_t seed) {
    return TensorList{random_tensor(cpu, {rows, columns}, seed), channels(cpu, 1)};
  });
}

void rms_norm_backward(benchmark::State& state) {
  Cpu cpu;
  compare(state, cpu, op::RmsNormBackward{}, [&](std::uint64_t seed) {
    const Tensor<Cpu> x = random_tensor(cpu, {rows, columns}, seed), weight = channels(cpu, 1);
    const Tensor<Cpu> rstd = eval_all(op::RmsNorm{}, x, weight)[1];
    return TensorList{random_tensor(cpu, {rows, columns}, seed + 100), x, weight, rstd};
  });
}

BENCHMARK_CAPTURE(layer_norm_forward, f32, DType::f32)->Apply(setup);
BENCHMARK_CAPTURE(layer_norm_forward, bf16, DType::bf16)->Apply(setup);
BENCHMARK_CAPTURE(layer_norm_backward, f32, DType::f32)->Apply(setup);
BENCHMARK_CAPTURE(layer_norm_backward, bf16, DType::bf16)->Apply(setup);
BENCHMARK(rms_norm_forward)->Apply(setup);
BENCHMARK(rms_norm_backward)->Apply(setup);

}  // namespace
}  // namespace ferrite::bench
