// What cuda_bench is made of: rows, each with a name that the peers use too, and how a row is measured.
// benches/peers/torch_timing.py measures in the same way; change both together.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/ops/statistic.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::bench {

/// Per call.
struct Measurement {
  double seconds = 0;  // median
  double min_seconds = 0;
  double flops = 0;             // 0: not a row about arithmetic
  double bytes = 0;             // that must move; 0: not a row about bandwidth
  std::optional<double> error;  // the largest |y - y64| / |y64| of its outputs, by L2 norms
};

/// The backends a row can run on. A row reaches one of them and all before it: slow ones get small sizes.
enum class Reach : std::uint8_t { cuda, cpu, naive };

struct Row {
  std::string name;
  std::array<std::function<Measurement()>, 3> measure;  // by Reach; empty beyond the row's
};

/// device: from the first to the last call on the device, calls in a row. call: on the device, from before to
/// after a single call that finds it idle, so that the host's part of the call counts. wall: calls in a row
/// by the host's clock. latency: by the host's clock, waiting for each call.
enum class Clock : std::uint8_t { device, call, wall, latency };

inline constexpr int repetitions = 20;
inline constexpr double batch_seconds = 5e-3;    // calls are repeated until a batch takes this long
inline constexpr double enough_seconds = 1;      // slow rows repeat less
inline constexpr double beyond_cache = 256e6;    // bytes, four times the L2 cache of an H200
inline constexpr std::size_t most_buffers = 32;  // sets of inputs and outputs that take turns
/// Choosing a plan is arithmetic at full power, right after which large products were seen to take up to a
/// tenth longer: calls of this many operations find a GPU that has rested.
inline constexpr double heavy_flops = 1e10;
inline constexpr std::chrono::milliseconds rest{300};

/// Empties the L2 cache and keeps the GPU busy for some 60 us, in which the host gets ahead of it: the first
/// launch is not part of the measurement.
template <class B>
void head_start(B& b) {
  if constexpr (std::same_as<B, Cuda>) zeros(b, {static_cast<std::int64_t>(beyond_cache) / 4});
}

/// Median and least seconds of a call. The GPU's clocks, caches and plans are warm then.
template <class B, class F>
Measurement time_calls(B& b, F&& call, Clock clock = Clock::device) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto since = [&](auto start) { return std::chrono::duration<double>(now() - start).count(); };
  const auto batch = [&](int calls) {
    if (clock == Clock::device) {
      head_start(b);
      Stopwatch<B> watch(b);
      for (int i = 0; i < calls; ++i) call();
      return 1e-9 * static_cast<double>(watch.stop().duration);
    }
    b.synchronize();
    if (clock == Clock::call) {
      Stopwatch<B> watch(b);
      call();
      return 1e-9 * static_cast<double>(watch.stop().duration);
    }
    const auto start = now();
    for (int i = 0; i < calls; ++i) {
      call();
      if (clock == Clock::latency) b.synchronize();
    }
    b.synchronize();
    return since(start);
  };
  batch(2);
  int calls = 1;
  while (clock != Clock::call && batch(calls) < batch_seconds && calls < 1024) calls *= 2;
  std::vector<double> times;
  const auto start = now();
  while (times.size() < repetitions && (times.size() < 3 || since(start) < enough_seconds))
    times.push_back(batch(calls) / calls);
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0], 0, 0, {}};
}

template <class B>
using Inputs = std::vector<Tensor<B>>;

template <class B, class Op>
Tensors<B> run(const Op& op, const Inputs<B>& in) {
  return eval_list(op, TensorSpan<B>(in));
}

/// Against the same op on the same backend in f64: rounding, not correctness, which the conformance suite
/// tests. Nothing where no input can be widened.
template <class B, class Op>
std::optional<double> error_of(const Op& op, const Inputs<B>& in) {
  Inputs<B> wide;
  bool widened = false;
  for (const Tensor<B>& x : in) {
    wide.push_back(is_floating(x.dtype()) ? cast(x, DType::f64) : x);
    widened = widened || wide.back().dtype() != x.dtype();
  }
  if (!widened) return {};
  const Tensors<B> y = run(op, in), exact = run(op, wide);
  const auto norm = [](const Tensor<B>& x) {
    return global_norm(std::vector<Tensor<B>>{x}).template item<double>();
  };
  double worst = 0;
  // Further outputs of an op with a gradient are statistics, kept for its backward.
  const std::size_t count = requires { op.saves(); }
  ? 1 : y.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (exact[i].dtype() != DType::f64) continue;
    const double size = norm(exact[i]), off = norm(cast(y[i], DType::f64) - exact[i]);
    const double error = size > 0 ? off / size : off;
    if (!(error <= worst)) worst = error;  // keeps NaN
  }
  return worst;
}

/// One op on inputs by make(backend, rng). Where they fit into the cache, several sets take turns; outputs
/// live until their turn comes again, so that they are as cold as inputs.
template <class B, class Op, class Make>
Measurement measure_op(B& b, const Op& op, const Make& make, Clock clock = Clock::device) {
  Rng rng(1);
  std::vector<Inputs<B>> sets{make(b, rng)};
  std::vector<Tensors<B>> results{run(op, sets[0])};
  Metas in, out;
  for (const Tensor<B>& x : sets[0]) in.push_back(x.meta());
  for (const Tensor<B>& y : results[0]) out.push_back(y.meta());
  const Cost cost = op_cost(op, in, out);
  const std::size_t most = std::same_as<B, Cuda> ? most_buffers : 2;
  while (sets.size() < most && static_cast<double>(sets.size()) * cost.bytes < beyond_cache)
    sets.push_back(make(b, rng));
  results.resize(sets.size());
  if (cost.flops >= heavy_flops) {
    b.synchronize();
    std::this_thread::sleep_for(rest);
  }
  std::size_t turn = 0;
  Measurement m = time_calls(
      b,
      [&] {
        turn = (turn + 1) % sets.size();
        results[turn] = run(op, sets[turn]);
      },
      clock);
  results.clear();
  sets.resize(1);
  m.flops = cost.flops;
  m.bytes = cost.bytes;
  m.error = error_of(op, sets[0]);
  return m;
}

class Suite {
 public:
  explicit Suite(Determinism determinism = Determinism::same_bits) : determinism_(determinism) {}

  /// A row for the GPU alone.
  void add(std::string name, std::function<Measurement()> measure) {
    rows_.push_back({std::move(name), {std::move(measure), {}, {}}});
  }
  /// make(backend, rng) gives a std::vector of input tensors, on any backend.
  template <class Op, class Make>
  void add_op(std::string name, const Op& op, const Make& make, Reach reach = Reach::cuda,
              Float32Products products = Float32Products::exact) {
    Row row{std::move(name), {}};
    row.measure[0] = [=, determinism = determinism_] {
      Cuda cuda;
      cuda.set_float32_products(products);
      cuda.set_determinism(determinism);
      return measure_op(cuda, op, make);
    };
    if (reach >= Reach::cpu) {
      row.measure[1] = [=] {
        Cpu cpu;
        return measure_op(cpu, op, make);
      };
    }
    if (reach >= Reach::naive) {
      row.measure[2] = [=] {
        Reference reference;
        return measure_op(reference, op, make);
      };
    }
    rows_.push_back(std::move(row));
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Determinism determinism_;
  std::vector<Row> rows_;
};

/// "softmax/bf16/8192x8192"
inline std::string row_name(std::string_view op, std::string_view dtype, std::string_view size) {
  return std::string(op) + "/" + std::string(dtype) + "/" + std::string(size);
}
/// "8192x768"
inline std::string extents(const Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.rank(); ++i) text += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return text;
}

// One per file.
void add_matmul(Suite& suite);
void add_elementwise(Suite& suite);
void add_lazy(Suite& suite);
void add_reduce(Suite& suite);
void add_row_ops(Suite& suite);
void add_cross_entropy(Suite& suite);
void add_attention(Suite& suite);
void add_convolution(Suite& suite);
void add_optimizer(Suite& suite);
void add_overhead(Suite& suite);
void add_priors(Suite& suite);
void add_launch(Suite& suite);
void add_training(Suite& suite);
void add_tokenizer(Suite& suite);
void add_linear_algebra(Suite& suite);

}  // namespace ferrite::bench
