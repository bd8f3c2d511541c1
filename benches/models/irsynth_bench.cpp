// IR-synth: pairs per second of one core without verification, verified by interpreter and CPU, and by NVRTC
// on all threads; and the share of distinct structures among 100,000.
#include <benchmark/benchmark.h>

#include <unordered_set>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::bench {
namespace {

using namespace irsynth;

/// Records with their JSON, on one thread.
void one_core(benchmark::State& state, Verify verify) {
  Config config;
  config.verify = verify;
  std::int64_t index = 0;
  for (auto _ : state) {
    const Record r = make_record(config, 42, index++);
    if (!r.failure.empty()) state.SkipWithError(r.failure.c_str());
    benchmark::DoNotOptimize(to_json(r, config, 42));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(one_core, not_verified, Verify::none)->Unit(benchmark::kMicrosecond)->MinTime(2);
BENCHMARK_CAPTURE(one_core, verified_on_cpu, Verify::cpu)->Unit(benchmark::kMicrosecond)->MinTime(2);

/// All that `irsynth --verify compile` does for 512 pairs, on all threads.
void compiled(benchmark::State& state) {
  Config config;
  config.verify = Verify::compile;
  constexpr std::int64_t count = 512;
  std::int64_t first = 0;
  for (auto _ : state) {
    std::vector<Record> records(count);
    parallel_ranges(count, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        records[static_cast<std::size_t>(i)] = make_record(config, 42, first + i);
    });
    try {
      compile_records(config, records);
    } catch (const BackendError& e) {
      state.SkipWithError(e.what());
      return;
    }
    for (const Record& r : records) {
      if (!r.failure.empty()) state.SkipWithError(r.failure.c_str());
      benchmark::DoNotOptimize(to_json(r, config, 42));
    }
    first += count;
  }
  state.SetItemsProcessed(state.iterations() * count);
  state.counters["threads"] = num_threads();
}
BENCHMARK(compiled)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime()->MinTime(5);

void distinct_structures(benchmark::State& state) {
  Config config;
  config.verify = Verify::none;
  constexpr int count = 100'000;
  std::unordered_set<std::string> seen;
  for (auto _ : state)
    for (int i = 0; i < count; ++i) seen.insert(make_record(config, 42, i).structure);
  state.counters["distinct_share"] = static_cast<double>(seen.size()) / count;
}
BENCHMARK(distinct_structures)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace ferrite::bench
