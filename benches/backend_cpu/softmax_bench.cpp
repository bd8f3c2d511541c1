// softmax and log_softmax, forward and backward, 4096 x 1024.
#include "ferrite/ops/softmax.hpp"
#include "memory_bound.hpp"

namespace ferrite::bench {
namespace {

template <class Op>
void forward(benchmark::State& state, const Op& op, DType dtype) {
  Cpu cpu;
  compare(state, cpu, op, [&](std::uint64_t seed) {
    return TensorList{cast(random_tensor(cpu, {rows, columns}, seed) * 4, dtype)};
  });
}

template <class Forward, class Backward>
void backward(benchmark::State& state, const Forward& forward_op, const Backward& op, DType dtype) {
  Cpu cpu;
  compare(state, cpu, op, [&](std::uint64_t seed) {
    const Tensor<Cpu> y = eval(forward_op, cast(random_tensor(cpu, {rows, columns}, seed) * 4, dtype));
    return TensorList{y, cast(random_tensor(cpu, {rows, columns}, seed + 100), dtype)};
  });
}

BENCHMARK_CAPTURE(forward, softmax_f32, op::Softmax{}, DType::f32)->Apply(setup);
BENCHMARK_CAPTURE(forward, softmax_bf16, op::Softmax{}, DType::bf16)->Apply(setup);
BENCHMARK_CAPTURE(forward, softmax_f16, op::Softmax{}, DType::f16)->Apply(setup);
BENCHMARK_CAPTURE(backward, softmax_f32, op::Softmax{}, op::SoftmaxBackward{}, DType::f32)->Apply(setup);
BENCHMARK_CAPTURE(backward, softmax_bf16, op::Softmax{}, op::SoftmaxBackward{}, DType::bf16)->Apply(setup);
BENCHMARK_CAPTURE(forward, log_softmax_f32, op::LogSoftmax{}, DType::f32)->Apply(setup);
BENCHMARK_CAPTURE(backward, log_softmax_f32, op::LogSoftmax{}, op::LogSoftmaxBackward{}, DType::f32)
    ->Apply(setup);

}  // namespace
}  // namespace ferrite::bench
