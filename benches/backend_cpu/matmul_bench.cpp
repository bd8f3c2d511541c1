// Matmul of the Cpu backend by each of its engines (Products): ferrite's own, OpenBLAS, and the faster of the
// two.
#include "ferrite/ops/matmul.hpp"

#include "ferrite/backend/cpu.hpp"
#include "ferrite/ops/random.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {
namespace {

constexpr int turns = 3;

Array random(const Shape& shape, DType dtype) {
  Cpu cpu;
  Array x = cpu.allocate({shape, dtype});
  run(cpu, op::Random{op::RandomFn::uniform, shape, dtype, 1, 2, -0.5, 0.5}, Ins(nullptr, 0), Outs(&x, 1));
  return x;
}

Array transposed(const Array& x) { return x.with_layout(x.layout().permute({0, 2, 1})); }

struct Problem {
  Array a, b, c;
  void multiply(Products products) {
    const Array* in[] = {&a, &b};
    Cpu cpu;
    cpu.set_products(products);
    run(cpu, op::Matmul{}, Ins(in, 2), Outs(&c, 1), {});
  }
};

/// Engines in turn, with a pause before each: a library's threads may spin for a while after their work.
void bench_matmul(benchmark::State& state, DType dtype, bool transpose_a, bool transpose_b) {
  const std::int64_t batch = state.range(0), m = state.range(1), n = state.range(2), k = state.range(3);
  const Array a = random(transpose_a ? Shape{batch, k, m} : Shape{batch, m, k}, dtype);
  const Array b = random(transpose_b ? Shape{batch, n, k} : Shape{batch, k, n}, dtype);
  Problem problem{transpose_a ? transposed(a) : a, transpose_b ? transposed(b) : b,
                  random({batch, m, n}, dtype)};
  const auto time = [&](Products products) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    const auto call = [&] { problem.multiply(products); };
    const double once = seconds(call, 1);
    return seconds(call, std::max(1, static_cast<int>(0.015 / once)));
  };
  for (int i = 0; i < 8; ++i) problem.multiply(Products::fastest);  // which has chosen then
  constexpr Products engines[] = {Products::reproducible, Products::openblas, Products::fastest};
  std::vector<double> times[3];
  for (auto _ : state) {
    for (std::size_t i = 0; i < 3; ++i) times[i].push_back(time(engines[i]));
    state.SetIterationTime(times[2].back());
  }
  const double own = median(times[0]), openblas = median(times[1]), fastest = median(times[2]);
  state.counters["own_us"] = 1e6 * own;
  state.counters["openblas_us"] = 1e6 * openblas;
  state.counters["fastest_us"] = 1e6 * fastest;
  state.counters["own_over_openblas"] = openblas / own;
  state.counters["fastest_over_best"] = std::min(own, openblas) / fastest;
  state.counters["gflops"] = 2e-9 * static_cast<double>(batch * m * n) * static_cast<double>(k) / fastest;
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "m", "n", "k"})->Iterations(turns)->UseManualTime()->Unit(benchmark::kMicrosecond);
  for (const std::int64_t n : {256, 384, 512, 768, 1024, 1536, 2048}) b->Args({1, n, n, n});
  b->Args({64, 128, 128, 128});
  b->Args({1, 128, 512, 784});
}

BENCHMARK_CAPTURE(bench_matmul, f32 / plain, DType::f32, false, false)->Apply(shapes);
BENCHMARK_CAPTURE(bench_matmul, f32 / lhs_transposed, DType::f32, true, false)->Apply(shapes);
BENCHMARK_CAPTURE(bench_matmul, f32 / rhs_transposed, DType::f32, false, true)->Apply(shapes);
BENCHMARK_CAPTURE(bench_matmul, f64 / plain, DType::f64, false, false)->Apply(shapes);
BENCHMARK_CAPTURE(bench_matmul, f64 / lhs_transposed, DType::f64, true, false)->Apply(shapes);
BENCHMARK_CAPTURE(bench_matmul, f64 / rhs_transposed, DType::f64, false, true)->Apply(shapes);

}  // namespace
}  // namespace ferrite::bench
