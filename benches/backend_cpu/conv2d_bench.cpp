// conv2d and its gradients in one kernel each beside their compositions.
#include "ferrite/ops/conv2d.hpp"
#include "random_tensor.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {
namespace {

struct Problem {
  Cpu cpu;
  op::ConvGeometry geometry;
  Tensor<Cpu> x, weight, bias, dy;

  explicit Problem(benchmark::State& state) {
    const std::int64_t images = state.range(0), channels = state.range(1), outputs = state.range(2);
    const std::int64_t size = state.range(3), kernel = state.range(4), stride = state.range(5);
    geometry.stride = {stride, stride};
    geometry.padding = {kernel / 2, kernel / 2};
    x = random_tensor(cpu, {images, channels, size, size}, 1);
    weight = random_tensor(cpu, {outputs, channels, kernel, kernel}, 2);
    bias = random_tensor(cpu, {outputs}, 3);
    const Meta metas[] = {x.meta(), weight.meta()};
    dy = random_tensor(cpu, op::Conv2d{geometry}.infer(metas)[0].shape, 4);
  }

  template <class Op>
  void compare(benchmark::State& state, const Op& op, const TensorList& in) {
    side_by_side(
        state, [&] { fused(op, in); }, [&] { composed(cpu, op, in); });
    const double flops =
        2.0 * static_cast<double>(dy.numel()) * static_cast<double>(weight.numel() / weight.size(0));
    state.counters["gflops"] = flops / state.counters["ours_us"] / 1e3;
  }
};

void conv2d(benchmark::State& state) {
  Problem p(state);
  p.compare(state, op::Conv2d{p.geometry}, {p.x, p.weight, p.bias});
}
void conv2d_input_grad(benchmark::State& state) {
  Problem p(state);
  p.compare(state, op::Conv2dInputGrad{p.geometry, p.x.shape()}, {p.dy, p.weight});
}
void conv2d_weight_grad(benchmark::State& state) {
  Problem p(state);
  p.compare(state, op::Conv2dWeightGrad{p.geometry, p.weight.shape()}, {p.dy, p.x});
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"images", "channels", "outputs", "size", "kernel", "stride"});
  b->Iterations(rounds)->UseManualTime()->Unit(benchmark::kMicrosecond);
  b->Args({64, 1, 16, 8, 3, 1})->Args({64, 16, 32, 8, 3, 1})->Args({64, 32, 64, 4, 3, 1});
  b->Args({8, 64, 64, 56, 3, 1})
      ->Args({8, 64, 256, 56, 1, 1})
      ->Args({1, 256, 256, 14, 3, 1})
      ->Args({4, 3, 64, 112, 7, 2});
}

BENCHMARK(conv2d)->Apply(shapes);
BENCHMARK(conv2d_input_grad)->Apply(shapes);
BENCHMARK(conv2d_weight_grad)->Apply(shapes);

}  // namespace
}  // namespace ferrite::bench
