// Factorisations, one large matrix or a batch of small ones. benches/peers/numpy_linear_algebra.py runs this
// program and the same in NumPy: ./dev bench --peer numpy.
#include <benchmark/benchmark.h>

#include <string>

#include "ferrite/ops/cholesky.hpp"
#include "ferrite/ops/svd.hpp"
#include "ferrite/stacks.hpp"

namespace {

using namespace ferrite;
using T = Tensor<Cpu>;

struct Matrices {
  T any, symmetric, positive, right;
  Matrices(Cpu& b, std::int64_t batch, std::int64_t n, DType dtype) {
    Rng rng(1);
    any = randn(b, {batch, n, n}, rng, 0, 1, dtype);
    right = randn(b, {batch, n, 1}, rng, 0, 1, dtype);
    symmetric = any + transpose(any, -1, -2);
    positive = matmul(any, transpose(any, -1, -2)) + eye(b, n, dtype) * static_cast<double>(n);
  }
};

template <class F>
void add(const std::string& op, DType dtype, std::int64_t batch, std::int64_t n, F call) {
  const std::string name =
      op + "/" + std::string(to_string(dtype)) + "/" + std::to_string(batch) + "x" + std::to_string(n);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 Cpu b;
                                 const Matrices m(b, batch, n, dtype);
                                 for (auto _ : state) call(m);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

const bool added = [] {
  constexpr std::int64_t sizes[][2] = {{1, 64},   {1, 256},  {1, 512},  {1, 1024},
                                       {1, 2048}, {256, 64}, {4096, 16}};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [batch, n] : sizes) {
      add("cholesky", dtype, batch, n,
          [](const Matrices& m) { benchmark::DoNotOptimize(cholesky(m.positive)); });
      add("solve", dtype, batch, n,
          [](const Matrices& m) { benchmark::DoNotOptimize(solve(m.any, m.right)); });
      add("qr", dtype, batch, n, [](const Matrices& m) { benchmark::DoNotOptimize(qr(m.any)); });
      add("eigh", dtype, batch, n, [](const Matrices& m) { benchmark::DoNotOptimize(eigh(m.symmetric)); });
      add("svd", dtype, batch, n, [](const Matrices& m) { benchmark::DoNotOptimize(svd(m.any)); });
    }
  return true;
}();

}  // namespace
