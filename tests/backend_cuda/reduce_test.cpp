// Reductions, argreductions, statistics and running sums where the conformance suite does not go: every path
// of the kernels (short and long rows, few and many columns, mixed axes), in several layouts, long, with
// special values, accumulating.
#include "backend_cuda/axes_support.hpp"
#include "ferrite/ops/statistic.hpp"

namespace ferrite::testing {
namespace {

using op::ReduceFn;
using op::StatisticFn;

struct CudaReduce : CudaAxes {};

struct ReduceCase {
  Shape shape, axes;
};
/// Each chooses another way through the kernels.
const ReduceCase reduce_cases[] = {
    {{200'000}, {}},         // one row in parts
    {{199'999}, {}},         // ... that ends in the middle of a pack
    {{3, 150'000}, {1}},     // few long rows
    {{3, 50'001}, {1}},      // ... not aligned
    {{3000, 40}, {1}},       // many short rows
    {{5000, 3}, {1}},        // a thread each
    {{60, 2048}, {1}},       // a warp or several
    {{2050, 60}, {0}},       // columns
    {{60'000, 3}, {0}},      // few long columns
    {{3, 60'000}, {0}},      // many short columns
    {{7, 40, 300}, {1}},     // columns within rows
    {{40, 64, 33}, {0, 2}},  // runs apart
    {{40, 9, 64}, {0, 2}},   // ... in packs
    {{300, 50, 2}, {0, 2}},  // runs too short for threads of their own
    {{6, 5, 4, 3, 8, 7}, {1, 3, 5}},
    {{6, 5, 4, 3, 8, 7}, {0, 2, 4}},
};

TEST_F(CudaReduce, EveryFunctionPathLayoutAndDType) {
  for (const ReduceCase& c : reduce_cases) {
    for (const DType dtype : arithmetic_dtypes) {
      const auto x = numbers(c.shape, dtype);
      for (int view = 0; view < view_count; ++view) {
        for (const ReduceFn fn :
             {ReduceFn::sum, ReduceFn::max, ReduceFn::min, ReduceFn::any, ReduceFn::all}) {
          SCOPED_TRACE(std::string(op::to_string(fn)) + " " + to_string(x.meta()) + " over " +
                       to_string(c.axes) + " view " + std::to_string(view));
          expect_same({x}, [&](const auto& in) {
            return eval(op::Reduce{fn, c.axes}, view_of(in[0], view));
          });
        }
      }
    }
  }
}

TEST_F(CudaReduce, Products) {
  for (const DType dtype : number_dtypes) {
    const auto x = numbers({300, 70}, dtype, 1, 3);
    for (const Shape& axes : {Shape{0}, Shape{1}})  // up to 2^70: exact as a float, wrapping as an integer
      expect_same({slice(x, 0, 0, 70)}, [&](const auto& in) { return prod(in[0], axes); });
  }
}

TEST_F(CudaReduce, ALongSumOfEqualNumbersIsExact) {
  constexpr std::int64_t n = 40'000'000;
  const float expected = static_cast<float>(static_cast<double>(0.1f) * n);
  EXPECT_EQ(sum(full(*gpu, {n}, 0.1, DType::f32)).item<float>(), expected);
  EXPECT_EQ(sum(full(*gpu, {n, 4}, 0.1, DType::f32), {0}).to_vector<float>(), std::vector(4, expected));
  EXPECT_EQ(sum(expand(full(*gpu, {1}, 0.1, DType::f32), {n})).item<float>(), expected);
}

TEST_F(CudaReduce, LongSumsAreAsGoodAsTheirDType) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {  // Reference adds f64 no better than Cuda
    const auto x = randn(cpu, {1000, 3001}, rng, 0, 1, dtype);
    for (const Shape& axes : {Shape{}, Shape{0}, Shape{1}}) {
      const auto length = static_cast<double>(op::reduced_count(x.shape(), normalize_axes("test", axes, 2)));
      expect_near(x, epsilon(dtype) + epsilon(DType::f32) * std::sqrt(length),
                  [&](const auto& t) { return sum(t, axes); });
    }
  }
}

TEST_F(CudaReduce, NanDecidesExtremes) {
  for (const DType dtype : floats) {
    std::vector<double> values(5000, 1.0);
    values[4321] = nan;
    const auto x = cast(from_vector(cpu, values, {50, 100}), dtype);
    for (const Shape& axes : {Shape{}, Shape{0}, Shape{1}}) {
      expect_near(x, 0, [&](const auto& t) { return max(t, axes); });
      expect_near(x, 0, [&](const auto& t) { return min(t, axes); });
    }
    EXPECT_TRUE(std::isnan(max(to(*gpu, x)).item<double>()));
    EXPECT_EQ(any(to(*gpu, cast(full(cpu, {9000}, -0.0, DType::f64), dtype))).item<int>(), 0);
    EXPECT_EQ(all(to(*gpu, x)).item<int>(), 1);
  }
}

TEST_F(CudaReduce, AddsToOutputsOfAnyLayout) {
  const auto x = numbers({7, 4096, 12}, DType::f32);
  const auto old = numbers({12, 7}, DType::f32);
  const Tensor<Cuda> out = to(*gpu, old);
  add_into(op::Reduce{ReduceFn::sum, {1}}, {to(*gpu, x)}, transpose(out, 0, 1));
  EXPECT_EQ(out.to_vector(), (old + transpose(sum(x, {1}), 0, 1)).to_vector());
  const auto column = squeeze(slice(out, 1, 3, 4), {1});
  const auto before = to(cpu, column);
  add_into(op::Reduce{ReduceFn::sum, {0, 2}}, {to(*gpu, slice(x, 1, 0, 12))}, column);
  EXPECT_EQ(column.to_vector(), (before + sum(slice(x, 1, 0, 12), {0, 2})).to_vector());
  EXPECT_THROW(add_into(op::Reduce{ReduceFn::max, {1}}, {to(*gpu, x)}, transpose(out, 0, 1)), BackendError);
}

TEST_F(CudaReduce, PlacesOfTheFirstExtreme) {
  for (const ReduceCase& c : reduce_cases) {
    if (c.axes.rank() > 1) continue;
    const int axis = c.axes.empty() ? 0 : static_cast<int>(c.axes[0]);
    for (const DType dtype : arithmetic_dtypes) {
      const auto x = numbers(c.shape, dtype);  // full of ties
      for (int view = 0; view < view_count; ++view) {
        SCOPED_TRACE(to_string(x.meta()) + " axis " + std::to_string(axis) + " view " + std::to_string(view));
        expect_same({x}, [&](const auto& in) { return argmax(view_of(in[0], view), axis); });
        expect_same({x}, [&](const auto& in) { return argmin(view_of(in[0], view), axis); });
      }
    }
  }
  for (const DType dtype : floats) {
    std::vector<double> values(200'000, -infinity);
    values[70'001] = values[150'000] = nan;
    const auto x = cast(from_vector(cpu, values), dtype);
    EXPECT_EQ(argmax(to(*gpu, x)).item<int>(), 70'001);
    EXPECT_EQ(argmin(to(*gpu, x)).item<int>(), 70'001);
    EXPECT_EQ(argmax(slice(to(*gpu, x), 0, 0, 70'000)).item<int>(), 0);
  }
}

TEST_F(CudaReduce, Statistics) {
  for (const DType dtype : floats) {
    for (const ReduceCase& c : reduce_cases) {
      const auto x = randn(cpu, c.shape, rng, 0.2, 0.2, dtype);  // sums within f16
      const double length =
          static_cast<double>(op::reduced_count(c.shape, normalize_axes("test", c.axes, c.shape.rank())));
      const double tolerance =
          4 * epsilon(dtype) + 1e-7 * (dtype == DType::f64 ? 1e-7 : 1) * std::sqrt(length);
      SCOPED_TRACE(to_string(x.meta()) + " over " + to_string(c.axes));
      for (const StatisticFn fn :
           {StatisticFn::mean, StatisticFn::var, StatisticFn::logsumexp, StatisticFn::norm})
        for (const double parameter : {1.0, 2.0, infinity}) {
          if (fn != StatisticFn::norm && parameter != 1) continue;
          expect_near(x, tolerance, [&](const auto& t) {
            return eval(op::Statistic{fn, c.axes, false, parameter}, t);
          });
        }
    }
  }
  expect_near(numbers({300, 33}, DType::i32), 1e-15, [](const auto& t) { return mean(t, {0}); });
  expect_near(numbers({300, 33}, DType::u8), 1e-6, [](const auto& t) { return var(t, {1}); });
}

TEST_F(CudaReduce, VarianceFarFromZeroAndLogsumexpOfInfinities) {
  const auto far = cast(randn(cpu, {3, 100'000}, rng, 1e4, 1e-1, DType::f64), DType::f32);
  expect_near(far, 1e-6, [](const auto& t) { return var(t, {1}); });
  const auto x =
      cast(from_vector(cpu, std::vector<double>{-infinity, -infinity, 1, infinity, 2, nan, -500, -501, -502},
                       {3, 3}),
           DType::f32);
  expect_near(x, 1e-6, [](const auto& t) { return logsumexp(t, {1}); });
  expect_near(x, 1e-6, [](const auto& t) { return logsumexp(t, {0}); });
  expect_near(slice(x, 1, 0, 2), 1e-6, [](const auto& t) { return logsumexp(t, {1}); });
}

TEST_F(CudaReduce, RunningSums) {
  const ReduceCase lines[] = {{{300'000}, {0}},   {{299'999}, {0}},    {{300, 1000}, {1}},
                              {{300, 1000}, {0}}, {{20'000, 32}, {0}}, {{7, 50, 40}, {1}},
                              {{40, 3}, {0}},     {{2, 70'001}, {1}}};
  for (const ReduceCase& c : lines) {
    for (const DType dtype : arithmetic_dtypes) {
      const auto x = numbers(c.shape, dtype);
      for (int view = 0; view < view_count; ++view)
        for (const bool reverse : {false, true}) {
          SCOPED_TRACE(to_string(x.meta()) + " axis " + to_string(c.axes) + " view " + std::to_string(view));
          expect_same({x}, [&](const auto& in) {
            return eval(op::Scan{static_cast<int>(c.axes[0]), reverse}, view_of(in[0], view));
          });
        }
    }
  }
}

TEST_F(CudaReduce, SameBitsOnEveryRun) {
  const auto x = to(*gpu, randn(cpu, {1500, 2000}, rng));
  const auto run = [&] {
    std::vector<std::vector<std::byte>> results;
    for (const Shape& axes : {Shape{}, Shape{0}, Shape{1}}) {
      results.push_back(to_bytes(sum(x, axes)));
      results.push_back(to_bytes(var(x, axes)));
      results.push_back(to_bytes(logsumexp(x, axes)));
    }
    for (const int axis : {0, 1}) results.push_back(to_bytes(cumsum(x, axis)));
    results.push_back(to_bytes(cumsum(reshape(x, {x.numel()}))));
    return results;
  };
  const auto first = run();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(run() == first);
}

TEST_F(CudaReduce, ThreeBillionElements) {
  constexpr std::int64_t n = 3'000'000'000;
  const auto x = full(*gpu, {n}, 1, DType::u8);
  Array one = slice(x, 0, 2'900'000'001, 2'900'000'002).primitive();
  run(*gpu, op::Fill{{1}, DType::u8, 9}, Ins(nullptr, 0), Outs(&one, 1));
  EXPECT_EQ(sum(x).item<std::int64_t>(), n + 8);
  EXPECT_EQ(max(x).item<int>(), 9);
  EXPECT_EQ(argmax(x).item<std::int64_t>(), 2'900'000'001);
  EXPECT_EQ(sum(reshape(x, {n / 3, 3}), {0}).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{n / 3 + (2'900'000'001 % 3 == 0 ? 8 : 0),
                                       n / 3 + (2'900'000'001 % 3 == 1 ? 8 : 0),
                                       n / 3 + (2'900'000'001 % 3 == 2 ? 8 : 0)}));
  EXPECT_EQ(sum(sum(reshape(x, {n / 3, 3}), {1})).item<std::int64_t>(), n + 8);
}

}  // namespace
}  // namespace ferrite::testing
