// Matmul of the Cpu backend against three loops in double.
#include "ferrite/ops/matmul.hpp"

#include <limits>

#include "backend_cpu/linalg/lapack.hpp"
#include "ops/contraction_support.hpp"

namespace ferrite::testing {
namespace {

/// Three loops over arrays whose batch axes broadcast; inputs of any dtype as double.
Values naive_matmul(const Array& a, const Array& b) {
  const op::Matmul op;
  const Shape shape = op.infer(metas_of({a, b}))[0].shape;
  const std::int64_t m = shape[shape.rank() - 2], n = shape.back(), k = a.shape().back();
  Shape a_shape = shape, b_shape = shape;
  a_shape[shape.rank() - 1] = k;
  b_shape[shape.rank() - 2] = k;
  const Values x = values_of(a.with_layout(a.layout().expand(a_shape)));
  const Values y = values_of(b.with_layout(b.layout().expand(b_shape)));
  Values z(at(shape.numel()), 0.0);
  for (std::int64_t batch = 0; m * n > 0 && batch < shape.numel() / (m * n); ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t l = 0; l < k; ++l)
          z[at((batch * m + i) * n + j)] += x[at((batch * m + i) * k + l)] * y[at((batch * k + l) * n + j)];
  return z;
}

void expect_matmul(const Array& a, const Array& b) {
  SCOPED_TRACE(to_string(a.meta()) + " times " + to_string(b.meta()));
  const Array c = run(op::Matmul{}, {a, b})[0];
  expect_close(c, naive_matmul(a, b), sum_tolerance(c.dtype(), a.shape().back()));
}

struct MatmulExtents {
  std::int64_t m, n, k;
};

TEST(CpuMatmul, AgreesWithThreeLoopsForEverySize) {
  for (const MatmulExtents e : {MatmulExtents{1, 1, 1},
                                {1, 1, 700},
                                {1, 37, 19},
                                {41, 1, 23},
                                {2, 3, 4},
                                {7, 5, 3},
                                {16, 16, 16},
                                {17, 33, 65},
                                {64, 64, 64},
                                {65, 63, 127},
                                {128, 512, 30},
                                {130, 300, 257},
                                {513, 70, 41},
                                {3, 2100, 66},
                                {600, 5, 90}}) {
    for (const DType dtype : {DType::f32, DType::f64})
      expect_matmul(random({e.m, e.k}, dtype), random({e.k, e.n}, dtype, Storage::contiguous, 2));
  }
}

TEST(CpuMatmul, TakesEveryDtypeInEveryStorage) {
  for (const DType dtype : arithmetic_dtypes) {
    if (dtype == DType::bool_) continue;
    for (const Storage left : all_storages) {
      for (const Storage right : all_storages)
        expect_matmul(random({37, 29}, dtype, left), random({29, 43}, dtype, right, 2));
    }
  }
}

TEST(CpuMatmul, PacksLongPanelsOfStridedOperands) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    expect_matmul(random({70, 1100}, dtype, Storage::spaced),
                  random({1100, 90}, dtype, Storage::reversed, 2));
    expect_matmul(random({70, 1100}, dtype, Storage::transposed), random({1100, 90}, dtype));
  }
}

TEST(CpuMatmul, PromotesMixedDtypes) {
  expect_matmul(random({5, 6}, DType::f16), random({6, 7}, DType::f32, Storage::transposed, 2));
  expect_matmul(random({5, 6}, DType::i32), random({6, 7}, DType::bool_, Storage::spaced, 2));
  expect_matmul(random({5, 6}, DType::f64, Storage::reversed),
                random({6, 7}, DType::i64, Storage::contiguous, 2));
}

TEST(CpuMatmul, WrapsAroundWhereIntegersOverflow) {
  const Array a = random({1, 2}, DType::i32), b = random({2, 1}, DType::i32);
  assign(a, {2147483647.0, 1.0});
  assign(b, {2.0, 5.0});
  EXPECT_EQ(values_of(run(op::Matmul{}, {a, b})[0]), (Values{3.0}));
}

TEST(CpuMatmul, BroadcastsBatchAxes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
    expect_matmul(random({3, 1, 5, 6}, dtype), random({4, 6, 7}, dtype, Storage::transposed, 2));
    expect_matmul(random({5, 6}, dtype, Storage::padded_rows),
                  random({2, 3, 6, 7}, dtype, Storage::contiguous, 2));
    expect_matmul(random({2, 1, 1, 33, 20}, dtype), random({3, 1, 20, 31}, dtype, Storage::reversed, 2));
  }
  const Array row = random({1, 40}, DType::f32), stretched = row.with_layout(row.layout().expand({50, 40}));
  expect_matmul(stretched, random({40, 30}, DType::f32));
  expect_matmul(random({30, 50}, DType::f32), stretched);
}

TEST(CpuMatmul, RunsManySmallProducts) {
  expect_matmul(random({70, 9, 12}, DType::f32), random({70, 12, 10}, DType::f32, Storage::contiguous, 2));
  expect_matmul(random({40, 65, 64}, DType::f32), random({40, 64, 66}, DType::f32, Storage::transposed, 2));
}

TEST(CpuMatmul, EveryEngineRunsBatchesOnAnyNumberOfThreads) {
  if (!cpu::has_lapack()) GTEST_SKIP() << "there is one engine: OpenBLAS was not found";
  constexpr int more_than_trials = 10;  // `fastest` has then been through both engines and chosen
  const int threads = num_threads();
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Storage storage : {Storage::contiguous, Storage::transposed, Storage::spaced}) {
      const Array a = random({24, 70, 64}, dtype), b = random({24, 64, 66}, dtype, storage, 2);
      const Values want = naive_matmul(a, b);
      for (const Products products : {Products::openblas, Products::fastest}) {
        for (const int count : {1, 4, 40}) {
          set_num_threads(count);
          for (int i = 0; i < more_than_trials; ++i) {
            Cpu cpu;
            cpu.set_products(products);
            Array c = cpu.allocate({{24, 70, 66}, dtype});
            const Array* in[] = {&a, &b};
            ferrite::run(cpu, op::Matmul{}, Ins(in, 2), Outs(&c, 1), Accumulate::none);
            expect_close(c, want, sum_tolerance(dtype, 64));
          }
        }
      }
    }
  }
  set_num_threads(threads);
}

TEST(CpuMatmul, SplitsLongInnerAxes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
    expect_matmul(random({1, 600000}, dtype), random({600000, 1}, dtype, Storage::contiguous, 2));
    expect_matmul(random({24, 9001}, dtype, Storage::transposed),
                  random({9001, 40}, dtype, Storage::contiguous, 2));
  }
}

TEST(CpuMatmul, GivesZerosForAnEmptyInnerAxis) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
    const Array c = run(op::Matmul{}, {random({2, 3, 0}, dtype), random({0, 4}, dtype)})[0];
    EXPECT_EQ(values_of(c), Values(24, 0.0));
  }
}

TEST(CpuMatmul, TakesEmptyExtents) {
  EXPECT_EQ(run(op::Matmul{}, {random({0, 3}, DType::f32), random({3, 4}, DType::f32)})[0].shape(),
            (Shape{0, 4}));
  EXPECT_EQ(run(op::Matmul{}, {random({2, 3}, DType::f32), random({3, 0}, DType::f32)})[0].shape(),
            (Shape{2, 0}));
  EXPECT_EQ(run(op::Matmul{}, {random({0, 2, 3}, DType::f32), random({3, 4}, DType::f32)})[0].shape(),
            (Shape{0, 2, 4}));
}

TEST(CpuMatmul, WritesAndAccumulatesIntoEveryLayout) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32}) {
    const Array a = random({2, 70, 33}, dtype), b = random({33, 81}, dtype, Storage::transposed, 2);
    const Values product = naive_matmul(a, b);
    for (const Storage storage : all_storages) {
      Array out[] = {allocate({2, 70, 81}, dtype, storage)};
      assign(out[0], Values(product.size(), 3.0));
      run_kernel_into(op::Matmul{}, {a, b}, out);
      expect_close(out[0], product, sum_tolerance(dtype, 33));
      assign(out[0], Values(product.size(), 3.0));
      run_kernel_into(op::Matmul{}, {a, b}, out, 1);
      Values sum = product;
      for (double& v : sum) v += 3;
      expect_close(out[0], sum, sum_tolerance(dtype, 33));
    }
  }
}

TEST(CpuMatmul, AccumulatesLongAndEmptyInnerAxes) {
  for (const std::int64_t k : {0, 1, 9000}) {
    const Array a = random({12, k}, DType::f32), b = random({k, 20}, DType::f32, Storage::contiguous, 2);
    Array out[] = {random({12, 20}, DType::f32, Storage::contiguous, 3)};
    Values want = values_of(out[0]);
    const Values product = naive_matmul(a, b);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += product[i];
    run_kernel_into(op::Matmul{}, {a, b}, out, 1);
    expect_close(out[0], want, sum_tolerance(DType::f32, k));
  }
}

TEST(CpuMatmul, PropagatesNanAndInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Array a = random({2, 2}, DType::f32), b = random({2, 2}, DType::f32);
  assign(a, {1, 0, std::nan(""), 1});
  assign(b, {infinity, 1, 1, 1});
  const Values c = values_of(run(op::Matmul{}, {a, b})[0]);
  EXPECT_EQ(c[0], infinity);
  EXPECT_TRUE(std::isnan(c[2]) && std::isnan(c[3]));
}

TEST(CpuMatmul, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const MatmulExtents e :
         {MatmulExtents{300, 520, 210}, {128, 130, 5000}, {1, 3000, 900}, {16, 16, 70000}}) {
      expect_same_bits_for_any_thread_count([&] {
        return run(op::Matmul{},
                   {random({e.m, e.k}, dtype), random({e.k, e.n}, dtype, Storage::transposed, 2)});
      });
    }
    expect_same_bits_for_any_thread_count([&] {
      return run(op::Matmul{},
                 {random({9, 70, 80}, dtype), random({9, 80, 60}, dtype, Storage::contiguous, 2)});
    });
  }
}

}  // namespace
}  // namespace ferrite::testing
