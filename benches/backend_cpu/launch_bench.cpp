// A chain of eight elementwise ops on 16M floats as one kernel, beside the eight ops of the Cpu backend and a
// plain copy; and a small kernel from IR to results, which is what verifying generated kernels costs.
#include <cstring>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/kernel/parse.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/launch.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {
namespace {

constexpr std::int64_t elements = std::int64_t{1} << 24;

void chain_of_eight(benchmark::State& state) {
  const auto kernel = kernel::Kernel::from_source(R"(import warp as wp

@wp.kernel
def chain(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = x[i] + 0.5
    v = v * 1.5
    v = wp.exp(v)
    v = v - 0.25
    v = wp.tanh(v)
    v = v * 0.75
    v = wp.max(v, 0.125)
    y[i] = v * v
)");
  Cpu cpu;
  Rng rng(1);
  const Tensor<Cpu> x = rand(cpu, {elements}, rng, -3, 3);
  Tensor<Cpu> y = zeros(cpu, {elements}), z;
  const auto fused = [&] { kernel.launch(cpu, elements, x, y); };
  const auto ops = [&] {
    const Tensor<Cpu> v = maximum(tanh(exp((x + 0.5) * 1.5) - 0.25) * 0.75, 0.125);
    z = v * v;
  };
  const auto copy = [&] {
    parallel_ranges(elements, 32768, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(y.primitive().data<float>() + begin, x.primitive().data<float>() + begin,
                  sizeof(float) * static_cast<std::size_t>(end - begin));
    });
  };
  fused(), ops(), copy();
  std::vector<double> ours, theirs, copies;
  for (auto _ : state) {
    ours.push_back(seconds(fused, 1));
    theirs.push_back(seconds(ops, 1));
    copies.push_back(seconds(copy, 1));
    state.SetIterationTime(ours.back());
  }
  state.counters["of_copy"] = median(copies) / median(ours);
  state.counters["times_ops"] = median(theirs) / median(ours);
}
BENCHMARK(chain_of_eight)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(15);

void small_kernel(benchmark::State& state) {
  const auto module = kernel::parse(R"(import warp as wp

@wp.kernel
def small(x: wp.array[float], y: wp.array[float], n: int):
    i = wp.tid()
    a = x[i] * 2.0
    b = wp.sin(a) + wp.sqrt(wp.abs(a))
    c = a * b - 3.0
    s = float(0.0)
    for j in range(8):
        d = c * float(j) + x[(i + j) % n]
        if d > 0.5:
            s += d * 0.5
        else:
            s -= wp.exp(-d * d)
    v = wp.vec3(a, b, c)
    w = wp.cross(v, wp.vec3(s, 1.0, 2.0))
    m = wp.mat33(a, b, c, 1.0, 2.0, 3.0, s, a, b)
    e = wp.length(m * w) + wp.dot(v, w) + wp.atan2(a, b)
    y[i] = e
)");
  std::vector<float> x(256, 0.3f), y(256);
  kernel::ArrayArgument arrays[] = {{x.data(), {256}, {1}}, {y.data(), {256}, {1}}};
  std::int32_t n = 256;
  void* arguments[] = {&arrays[0], &arrays[1], &n};
  const std::int64_t dim[] = {256};
  for (auto _ : state) kernel::BlockProgram(module, module.kernel()).run(dim, arguments);
}
BENCHMARK(small_kernel)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ferrite::bench
