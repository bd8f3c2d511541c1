// Matmul of the Cpu backend beside OpenBLAS called directly with its own threads.
#include "ferrite/ops/matmul.hpp"

#ifdef FERRITE_HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {
namespace {

Array random(const Shape& shape) {
  const Array x = Cpu{}.allocate({shape, DType::f32});
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    x.data<float>()[i] = uniform_at<float>({1, 2}, static_cast<std::uint64_t>(i)) - 0.5f;
  return x;
}

Array transposed(const Array& x) {
  const int rank = x.shape().rank();
  return x.with_layout(rank == 2 ? x.layout().permute({1, 0}) : x.layout().permute({0, 2, 1}));
}

void multiply(const Array& a, const Array& b, Array& c) {
  const Array* in[] = {&a, &b};
  Cpu cpu;
  run(cpu, op::Matmul{}, Ins(in, 2), Outs(&c, 1));
}

/// Dense f32 operands [batch, rows, columns] as stored, `batch` products one after the other.
void direct(const Array& a, bool transpose_a, const Array& b, bool transpose_b, Array& c) {
#ifdef FERRITE_HAVE_OPENBLAS
  const Shape& s = c.shape();
  const auto batch = s[0], m = s[1], n = s[2], k = a.shape()[transpose_a ? 1 : 2];
  const auto as_int = [](std::int64_t x) { return static_cast<int>(x); };
  openblas_set_num_threads(num_threads());
  for (std::int64_t i = 0; i < batch; ++i) {
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, as_int(m), as_int(n), as_int(k), 1.0f,
                a.data<float>() + i * m * k, as_int(a.shape()[2]), b.data<float>() + i * k * n,
                as_int(b.shape()[2]), 0.0f, c.data<float>() + i * m * n, as_int(n));
  }
  openblas_set_num_threads(1);
#else
  multiply(transpose_a ? transposed(a) : a, transpose_b ? transposed(b) : b, c);
#endif
}

void bench_matmul(benchmark::State& state, bool transpose_a, bool transpose_b) {
  const std::int64_t batch = state.range(0), m = state.range(1), n = state.range(2), k = state.range(3);
  const Array a = random(transpose_a ? Shape{batch, k, m} : Shape{batch, m, k});
  const Array b = random(transpose_b ? Shape{batch, n, k} : Shape{batch, k, n});
  const Array lhs = transpose_a ? transposed(a) : a, rhs = transpose_b ? transposed(b) : b;
  Array ours = random({batch, m, n}), theirs = random({batch, m, n});
  side_by_side(
      state, [&] { multiply(lhs, rhs, ours); }, [&] { direct(a, transpose_a, b, transpose_b, theirs); });
  const double flops = 2.0 * static_cast<double>(batch * m * n) * static_cast<double>(k);
  state.counters["gflops"] = flops / state.counters["ours_us"] / 1e3;
  for (std::int64_t i = 0; i < batch * m * n; ++i) {
    if (std::abs(ours.data<float>()[i] - theirs.data<float>()[i]) > 1e-3f)
      return state.SkipWithError("results differ");
  }
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "m", "n", "k"})->Iterations(rounds)->UseManualTime()->Unit(benchmark::kMicrosecond);
  for (const std::int64_t n : {256, 384, 512, 768, 1024, 1536, 2048}) b->Args({1, n, n, n});
  b->Args({64, 128, 128, 128});
  b->Args({1, 128, 512, 784});
}

BENCHMARK_CAPTURE(bench_matmul, plain, false, false)->Apply(shapes);
BENCHMARK_CAPTURE(bench_matmul, lhs_transposed, true, false)->Apply(shapes);
BENCHMARK_CAPTURE(bench_matmul, rhs_transposed, false, true)->Apply(shapes);

}  // namespace
}  // namespace ferrite::bench
