// Elementwise ops and reductions of the Cpu backend beside their two ceilings, in turn and on the same
// threads: a plain copy (bytes per second) and Eigen's own expression. `of_copy` and `of_eigen` are shares of
// those rates; the bar is 0.90 of whichever is lower, so that the larger of the two counts.
#include <Eigen/Core>
#include <cstring>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/evaluate.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "side_by_side.hpp"

namespace ferrite::bench {
namespace {

constexpr std::int64_t elements = std::int64_t{1} << 24;
constexpr std::int64_t grain = 32768;

Array random(const Shape& shape) {
  Array x = Cpu{}.allocate({shape, DType::f32});
  Cpu cpu;
  run(cpu, op::Random{op::RandomFn::uniform, shape, DType::f32, 1, 2, -3, 3}, Ins(nullptr, 0), Outs(&x, 1));
  return x;
}

template <class Op>
void run(const Op& op, std::initializer_list<const Array*> in, Array& out) {
  Cpu cpu;
  run(cpu, op, Ins(in.begin(), in.size()), Outs(&out, 1));
}

/// Times the three in turn; `bytes` is what ours must read and write.
template <class Ours, class Peer>
void compare(benchmark::State& state, double bytes, Ours&& ours, Peer&& peer) {
  const Array source = random({elements}), target = random({elements});
  const auto copy = [&] {
    parallel_ranges(elements, grain, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(target.data<float>() + begin, source.data<float>() + begin,
                  sizeof(float) * static_cast<std::size_t>(end - begin));
    });
  };
  ours(), peer(), copy();
  std::vector<double> our_times, peer_times, copy_times;
  for (auto _ : state) {
    our_times.push_back(seconds(ours, 3));
    copy_times.push_back(seconds(copy, 3));
    peer_times.push_back(seconds(peer, 3));
    state.SetIterationTime(our_times.back());
  }
  const double rate = bytes / median(our_times), copy_rate = 2.0 * source.meta().bytes() / median(copy_times);
  state.counters["GB/s"] = rate / 1e9;
  state.counters["copy_GB/s"] = copy_rate / 1e9;
  state.counters["of_copy"] = rate / copy_rate;
  state.counters["of_eigen"] = median(peer_times) / median(our_times);
}

using Input = Eigen::Map<const Eigen::ArrayXf>;
using Output = Eigen::Map<Eigen::ArrayXf>;

template <class Op, class Expression>
void bench_unary(benchmark::State& state, const Op& op, Expression expression) {
  const Array x = random({elements});
  Array y = random({elements}), z = random({elements});
  compare(
      state, 2.0 * x.meta().bytes(), [&] { run(op, {&x}, y); },
      [&] {
        parallel_ranges(elements, grain, [&](std::int64_t begin, std::int64_t end) {
          Output(z.data<float>() + begin, end - begin) =
              expression(Input(x.data<float>() + begin, end - begin));
        });
      });
  if (!Input(y.data<float>(), elements).isApprox(Input(z.data<float>(), elements), 1e-5f))
    state.SkipWithError("results differ");
}

template <class Expression>
void bench_binary(benchmark::State& state, op::BinaryFn fn, Expression expression) {
  const Array a = random({elements}), b = random({elements});
  Array y = random({elements}), z = random({elements});
  compare(
      state, 3.0 * a.meta().bytes(),
      [&] {
        run(op::Binary{fn}, {&a, &b}, y);
      },
      [&] {
        parallel_ranges(elements, grain, [&](std::int64_t begin, std::int64_t end) {
          Output(z.data<float>() + begin, end - begin) = expression(
              Input(a.data<float>() + begin, end - begin), Input(b.data<float>() + begin, end - begin));
        });
      });
  if (!Input(y.data<float>(), elements).isApprox(Input(z.data<float>(), elements), 1e-5f))
    state.SkipWithError("results differ");
}

/// Over [4096, 4096]; Eigen's peer shares rows, or strips of columns, out among the threads.
void bench_reduce(benchmark::State& state, op::ReduceFn fn, const Shape& axes) {
  using Matrix = Eigen::Map<const Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
  constexpr std::int64_t side = 4096;
  const Array x = random({side, side});
  const op::Reduce op{fn, axes};
  const Meta meta = x.meta();
  Array y = Cpu{}.allocate(op.infer({&meta, 1})[0]), z = Cpu{}.allocate({{side}, DType::f32});
  const Matrix matrix(x.data<float>(), side, side);
  const bool by_columns = axes == Shape{0}, sum = fn == op::ReduceFn::sum;
  compare(
      state, static_cast<double>(meta.bytes()), [&] { run(op, {&x}, y); },
      [&] {
        parallel_ranges(side, 64, [&](std::int64_t begin, std::int64_t end) {
          Output part(z.data<float>() + begin, end - begin);
          const auto columns = matrix.middleCols(begin, end - begin);
          const auto rows = matrix.middleRows(begin, end - begin);
          if (by_columns)
            part = sum ? columns.colwise().sum().transpose().eval()
                       : columns.colwise().maxCoeff().transpose().eval();
          else
            part = sum ? rows.rowwise().sum().eval() : rows.rowwise().maxCoeff().eval();
        });
      });
}

void add_eight(benchmark::State& state) {
  Cpu cpu;
  const Array a = random({8}), b = random({8});
  const Array* in[] = {&a, &b};
  for (auto _ : state)
    benchmark::DoNotOptimize(evaluate(cpu, op::Binary{op::BinaryFn::add}, Refs<Array>(in, 2)));
}

using op::BinaryFn;
using op::ReduceFn;
using op::UnaryFn;

void rounds_of(benchmark::internal::Benchmark* b) {
  b->Iterations(rounds)->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(bench_binary, add, BinaryFn::add, [](auto a, auto b) { return a + b; }) -> Apply(rounds_of);
BENCHMARK_CAPTURE(bench_binary, mul, BinaryFn::mul, [](auto a, auto b) { return a * b; }) -> Apply(rounds_of);
BENCHMARK_CAPTURE(bench_unary, exp, op::Unary{UnaryFn::exp}, [](auto x) { return x.exp(); })
    -> Apply(rounds_of);
BENCHMARK_CAPTURE(bench_unary, tanh, op::Unary{UnaryFn::tanh}, [](auto x) { return x.tanh(); })
    -> Apply(rounds_of);
BENCHMARK_CAPTURE(bench_unary, gelu, op::Unary{UnaryFn::gelu_tanh}, [](auto x) {
  return 0.5f * x * (1 + (0.7978845608f * (x + 0.044715f * x.cube())).tanh());
}) -> Apply(rounds_of);
BENCHMARK_CAPTURE(bench_reduce, sum_rows, ReduceFn::sum, Shape{1})->Apply(rounds_of);
BENCHMARK_CAPTURE(bench_reduce, sum_columns, ReduceFn::sum, Shape{0})->Apply(rounds_of);
BENCHMARK_CAPTURE(bench_reduce, sum_all, ReduceFn::sum, Shape{})->Apply(rounds_of);
BENCHMARK_CAPTURE(bench_reduce, max_rows, ReduceFn::max, Shape{1})->Apply(rounds_of);
BENCHMARK_CAPTURE(bench_reduce, max_columns, ReduceFn::max, Shape{0})->Apply(rounds_of);
BENCHMARK_CAPTURE(bench_reduce, max_all, ReduceFn::max, Shape{})->Apply(rounds_of);
BENCHMARK(add_eight);

}  // namespace
}  // namespace ferrite::bench
