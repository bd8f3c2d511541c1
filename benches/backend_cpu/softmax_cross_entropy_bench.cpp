// softmax_cross_entropy, forward and backward, 4096 x 1024.
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "memory_bound.hpp"

namespace ferrite::bench {
namespace {

Tensor<Cpu> targets(Cpu& cpu) {
  const Array x = cpu.allocate({{rows}, DType::i64});
  for (std::int64_t i = 0; i < rows; ++i)
    x.data<std::int64_t>()[i] = integer_at({1, 2}, static_cast<std::uint64_t>(i), 0, columns);
  return {cpu, x};
}

void cross_entropy_forward(benchmark::State& state, DType dtype) {
  Cpu cpu;
  compare(state, cpu, op::SoftmaxCrossEntropy{}, [&](std::uint64_t seed) {
    return TensorList{cast(random_tensor(cpu, {rows, columns}, seed) * 4, dtype), targets(cpu)};
  });
}

void cross_entropy_backward(benchmark::State& state, DType dtype) {
  Cpu cpu;
  compare(state, cpu, op::SoftmaxCrossEntropyBackward{}, [&](std::uint64_t seed) {
    const Tensor<Cpu> logits = cast(random_tensor(cpu, {rows, columns}, seed) * 4, dtype);
    const Tensor<Cpu> lse = eval_all(op::SoftmaxCrossEntropy{}, logits, targets(cpu))[1];
    return TensorList{random_tensor(cpu, {rows}, 3), logits, targets(cpu), lse};
  });
}

BENCHMARK_CAPTURE(cross_entropy_forward, f32, DType::f32)->Apply(setup);
BENCHMARK_CAPTURE(cross_entropy_forward, bf16, DType::bf16)->Apply(setup);
BENCHMARK_CAPTURE(cross_entropy_backward, f32, DType::f32)->Apply(setup);
BENCHMARK_CAPTURE(cross_entropy_backward, bf16, DType::bf16)->Apply(setup);

}  // namespace
}  // namespace ferrite::bench
