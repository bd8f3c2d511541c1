// order_statistics and bucketize: the very bits of Cpu on columns that break selection and search, in every
// layout, for short columns (sorted), long ones (sampled) and samples that mislead; and inside a graph.
#include <algorithm>
#include <cstring>

#include "backend_cuda/axes_support.hpp"
#include "backend_cuda/runtime/sample.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/ops/bucketize.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/linspace.hpp"
#include "ferrite/ops/order_statistics.hpp"
#include "ferrite/tensor/host.hpp"

namespace ferrite::testing {
namespace {

constexpr QuantileMethod methods[] = {QuantileMethod::linear, QuantileMethod::inverted_cdf,
                                      QuantileMethod::averaged_inverted_cdf};
constexpr std::int64_t column_kinds = 14;

/// One element of a column of some kind.
double element(std::int64_t kind, std::int64_t row, std::int64_t rows, DType dtype) {
  const auto i = static_cast<std::uint64_t>(row);
  const double u = uniform_at<double>({7, static_cast<std::uint64_t>(kind)}, i);
  const double v = uniform_at<double>({8, static_cast<std::uint64_t>(kind)}, i);
  const double tiny = dtype == DType::f64 ? 0x1p-1074 : 0x1p-149;
  const double ulp = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
  switch (kind) {
    case 0:
      return u - 0.5;
    case 1:
      return normal_at<double>({9, 1}, i);
    case 2:
      return std::floor(4 * u);
    case 3:
      return 7.5;
    case 4:
      return v < 0.3 ? nan : u;
    case 5:
      return nan;
    case 6:
      return v < 0.1 ? -infinity : v > 0.9 ? infinity : u;
    case 7:
      return (std::floor(u * 20) - 10) * tiny;
    case 8:
      return v < 0.6 ? 0.0 : v < 0.7 ? -0.0 : u;
    case 9:
      return std::exp(40 * u - 20) * (v < 0.5 ? 1 : -1);
    case 10:
      return static_cast<double>(row) - static_cast<double>(rows) / 2;  // in order
    case 11:
      return static_cast<double>(row % 10);  // periodic
    case 12:
      return 1 + std::floor(1000 * u) * ulp;  // neighbours
    default:
      return row == rows / 2 ? 1.0 : nan;  // one number
  }
}

Tensor<Cpu> table(Cpu& cpu, std::int64_t rows, DType dtype) {
  std::vector<double> values;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t kind = 0; kind < column_kinds; ++kind) values.push_back(element(kind, r, rows, dtype));
  return cast(from_vector(cpu, values, {rows, column_kinds}), dtype);
}

/// Quantiles of the columns as edges, with ties, infinities and NaN behind the used ones.
Tensor<Cpu> edges_of(const Tensor<Cpu>& x, std::int64_t count) {
  const auto levels = linspace(x.backend(), 0, 1, count, DType::f64);
  return cast(order_statistics(x, levels).lower, DType::f64);
}

struct CudaBins : CudaAxes {
  void expect_statistics_of_cpu(const Tensor<Cpu>& x, std::int64_t levels, QuantileMethod method,
                                int view = 0) {
    SCOPED_TRACE(to_string(x.meta()) + ", " + std::to_string(levels) + " levels, " +
                 std::string(to_string(method)) + ", view " + std::to_string(view));
    const auto level =
        levels > 1 ? linspace(cpu, 0, 1, levels, DType::f64) : full(cpu, {levels}, 0.5, DType::f64);
    const auto outputs = [&](const auto& in) {
      return order_statistics(view_of(in[0], view), in[1], method);
    };
    expect_same({x, level}, [&](const auto& in) { return outputs(in).lower; });
    expect_same({x, level}, [&](const auto& in) { return outputs(in).upper; });
    expect_same({x, level}, [&](const auto& in) { return outputs(in).count; });
  }
  void expect_tokens_of_cpu(const Tensor<Cpu>& x, const Tensor<Cpu>& edges, DType dtype, int view = 0) {
    for (const Closed closed : {Closed::left, Closed::right}) {
      SCOPED_TRACE(to_string(x.meta()) + " " + to_string(edges.meta()) + " " +
                   std::string(to_string(closed)) + " view " + std::to_string(view));
      expect_same({x, edges},
                  [&](const auto& in) { return bucketize(view_of(in[0], view), in[1], closed, 255, dtype); });
    }
  }
};

TEST_F(CudaBins, OrderStatisticsOfColumnsOfAnyLength) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t rows : {1, 2, 3, 50, 1000, 8192, 8193, 8200, 20'000, 70'001}) {
      const auto x = table(cpu, rows, dtype);
      for (const QuantileMethod method : methods) expect_statistics_of_cpu(x, 101, method);
      expect_statistics_of_cpu(x, 1, QuantileMethod::linear);
      expect_statistics_of_cpu(x, 1000, QuantileMethod::linear);
    }
}

TEST_F(CudaBins, OrderStatisticsOfOtherDTypesAndManyLevelsAreComposed) {
  for (const DType dtype : {DType::f16, DType::bf16})
    expect_statistics_of_cpu(table(cpu, 9000, dtype), 20, QuantileMethod::linear);
  // Numbers, not bits: the Cpu has a kernel for so many levels, which gives -0 as 0.
  for (const bool is_upper : {false, true})
    expect_near(table(cpu, 9000, DType::f32), 0, [&](const auto& x) {
      const auto found = order_statistics(x, linspace(x.backend(), 0, 1, 2048, DType::f64));
      return is_upper ? found.upper : found.lower;
    });
  expect_statistics_of_cpu(table(cpu, 9000, DType::f32), 2047, QuantileMethod::linear);
}

TEST_F(CudaBins, OrderStatisticsInAnyLayout) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (int view = 1; view < view_count; ++view)
      for (const std::int64_t rows : {97, 9001}) {
        // Columns that lie dense, and others; the last view has as many columns as there were rows.
        const auto x = table(cpu, rows, dtype), turned = contiguous(transpose(x, 0, 1));
        expect_statistics_of_cpu(view == 6 ? slice(x, 0, 0, 97) : x, 11, QuantileMethod::linear, view);
        expect_statistics_of_cpu(transpose(turned, 0, 1), 11, QuantileMethod::linear, view == 6 ? 0 : view);
      }
}

TEST_F(CudaBins, OrderStatisticsOfLongColumns) {
  const auto x = to(cpu, randn(*gpu, {3'000'001, 3}, rng));
  const auto mixed = cat<Cpu>({x, round(x * 2), exp(x * 10)}, 1);
  expect_statistics_of_cpu(mixed, 101, QuantileMethod::linear);
  const auto turned = transpose(contiguous(transpose(mixed, 0, 1)), 0, 1);
  expect_statistics_of_cpu(turned, 101, QuantileMethod::linear);
  expect_statistics_of_cpu(slice(turned, 0, 1), 11, QuantileMethod::inverted_cdf);
}

TEST_F(CudaBins, OrderStatisticsNeedNoRepresentativeSample) {
  const std::int64_t rows = 200'000;
  std::vector<double> values(static_cast<std::size_t>(2 * rows));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal_at<double>({3, 3}, i);
  for (int i = 0; i < cuda::sample_size; ++i) {  // it sees one value, or two far away
    const auto row = static_cast<std::size_t>(cuda::sampled_row(i, rows));
    values[2 * row] = 0;
    values[2 * row + 1] = i % 2 ? 1e30 : -1e30;
  }
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto x = cast(from_vector(cpu, values, {rows, 2}), dtype);
    for (const std::int64_t levels : {5, 101}) expect_statistics_of_cpu(x, levels, QuantileMethod::linear);
  }
}

TEST_F(CudaBins, TokensOfColumnsOfEveryKind) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::int64_t rows : {1, 7, 600, 5003}) {
      const auto x = table(cpu, rows, dtype);
      for (const DType token : {DType::u8, DType::i32, DType::i64})
        for (const std::int64_t edges : {1, 2, 99, 255}) expect_tokens_of_cpu(x, edges_of(x, edges), token);
    }
}

TEST_F(CudaBins, TokensInAnyLayout) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (int view = 1; view < view_count; ++view)
      for (const std::int64_t rows : {64, 1201}) {
        const auto x = table(cpu, rows, dtype), turned = transpose(contiguous(transpose(x, 0, 1)), 0, 1);
        const auto edges = edges_of(view_of(view == 6 ? slice(x, 0, 0, 60) : x, view), 40);
        for (const DType token : {DType::u8, DType::i32}) {
          expect_tokens_of_cpu(view == 6 ? slice(x, 0, 0, 60) : x, edges, token, view);
          if (view != 6) expect_tokens_of_cpu(turned, edges, token, view);
        }
      }
}

TEST_F(CudaBins, TokensOfManyColumnsAndManyEdges) {
  for (const std::int64_t columns : {1, 3, 64, 257, 1000}) {
    const auto x = randn(cpu, {301, columns}, rng), turned = transpose(contiguous(transpose(x, 0, 1)), 0, 1);
    for (const std::int64_t edges : {0, 50, 1000}) {
      const auto e = edges > 0 ? edges_of(x, edges) : zeros(cpu, {columns, 0}, DType::f64);
      expect_tokens_of_cpu(x, e, DType::i32);
      expect_tokens_of_cpu(turned, e, DType::i32);
    }
  }
  const auto x = randn(cpu, {70'000, 2}, rng);  // tables beyond shared memory
  const auto edges = sort(cast(transpose(slice(x, 0, 0, 30'000), 0, 1), DType::f64), 1).first;
  expect_tokens_of_cpu(x, edges, DType::i32);
  expect_tokens_of_cpu(transpose(contiguous(transpose(x, 0, 1)), 0, 1), edges, DType::i32);
}

TEST_F(CudaBins, TokensBesideTheEdges) {
  std::vector<double> edges, values{-infinity, infinity, nan, -0.0, 0.0};
  for (const double v : {-1e300, -1.5, -0x1p-149, -1e-320, -0.0, 0.0, 1e-320, 0x1p-149, 0.1, 1.0, 1 + 0x1p-40,
                         1 + 0x1p-23 - 0x1p-50, 3.4e38, 1e300}) {
    edges.push_back(v);
    const auto near = static_cast<float>(v);
    for (const float x : {near, std::nextafter(near, -INFINITY), std::nextafter(near, INFINITY)})
      values.push_back(static_cast<double>(x));
  }
  std::sort(edges.begin(), edges.end());
  const auto rows = static_cast<std::int64_t>(values.size()), count = static_cast<std::int64_t>(edges.size());
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto x = cast(from_vector(cpu, values, {rows, 1}), dtype);
    expect_tokens_of_cpu(x, from_vector(cpu, edges, {1, count}), DType::u8);
    const std::vector<double> ends{-infinity, -infinity, 0, nan, 0, 2, infinity, infinity};
    expect_tokens_of_cpu(x, from_vector(cpu, ends, {1, 8}), DType::u8);
    for (const double v : {infinity, -infinity, 0.0, -0.0, nan})  // one finite edge, or none
      expect_tokens_of_cpu(x, full(cpu, {1, 3}, v, DType::f64), DType::u8);
  }
}

TEST_F(CudaBins, CanBeCaptured) {
  const auto first = to(*gpu, table(cpu, 9000, DType::f32)), second = flip(first, {1});
  const auto levels = linspace(*gpu, 0, 1, 33, DType::f64);
  const auto x = contiguous(first) + 0;
  Tensor<Cuda> tokens;
  const auto step = [&] {
    tokens = bucketize(x, cast(order_statistics(x, levels).lower, DType::f64), Closed::left, 255, DType::u8);
  };
  step();
  auto graph = CudaGraph::capture(*gpu, step);
  assign(x, to_host(second));
  graph.replay();
  const auto replayed = to_bytes(tokens);
  step();
  EXPECT_TRUE(replayed == to_bytes(tokens));
}

TEST_F(CudaBins, PinnedMemoryIsCopiedAsItIs) {
  const std::int64_t n = 3 << 20;
  const auto memory = pinned_memory(4 * n);
  const auto x = randn(cpu, {n}, rng);
  std::memcpy(memory.get(), to_bytes(x).data(), 4 * n);
  const auto on_gpu = from_bytes(*gpu, x.meta(), memory.get());
  EXPECT_TRUE(to_bytes(on_gpu) == to_bytes(x));
  std::memset(memory.get(), 0, 4 * n);
  gpu->copy_to_host(on_gpu.primitive(), memory.get());
  EXPECT_EQ(std::memcmp(memory.get(), to_bytes(x).data(), 4 * n), 0);
}

}  // namespace
}  // namespace ferrite::testing
