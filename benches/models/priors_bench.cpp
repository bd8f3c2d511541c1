// Priors: datasets per second of each family with post-processing, the default mixture on Cpu and Reference,
// the raw values of many small Formula datasets, and the hand-over to another library.
#include <benchmark/benchmark.h>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/interop/dlpack.hpp"
#include "ferrite/models/priors/priors.hpp"

namespace ferrite::bench {
namespace {

using namespace priors;

/// 1024 rows, 2 to 20 features, classification.
template <class B>
void datasets(benchmark::State& state, Family family) {
  B backend;
  Config config;
  config.family = family;
  constexpr std::int64_t count = 128;
  std::int64_t first = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(generate(backend, config, 1, first, count).x);
    first += count;
  }
  state.SetItemsProcessed(state.iterations() * count);
}
void on_cpu(benchmark::State& state, Family family) { datasets<Cpu>(state, family); }
void on_reference(benchmark::State& state, Family family) { datasets<Reference>(state, family); }
void each(benchmark::internal::Benchmark* b) { b->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2); }

BENCHMARK_CAPTURE(on_cpu, mixture, Family::mixture)->Apply(each);
BENCHMARK_CAPTURE(on_reference, mixture, Family::mixture)->Apply(each);
BENCHMARK_CAPTURE(on_cpu, formula, Family::formula)->Apply(each);
BENCHMARK_CAPTURE(on_cpu, graph, Family::graph)->Apply(each);
BENCHMARK_CAPTURE(on_cpu, mlp_scm, Family::mlp_scm)->Apply(each);
BENCHMARK_CAPTURE(on_cpu, tree_scm, Family::tree_scm)->Apply(each);
BENCHMARK_CAPTURE(on_cpu, gp, Family::gp)->Apply(each);

/// x and y of 64 rows and 4 features, nothing done to them.
void formula_raw(benchmark::State& state) {
  Cpu backend;
  constexpr std::int64_t count = 50000;
  std::int64_t first = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(generate_formula(backend, FormulaConfig{}, 64, 4, 1, first, count).y);
    first += count;
  }
  state.SetItemsProcessed(state.iterations() * count);
  state.SetBytesProcessed(state.iterations() * count * 64 * 5 * 4);
}
BENCHMARK(formula_raw)->Apply(each);

/// A batch to another library and back: the memory stays where it is, whatever its size.
void hand_over(benchmark::State& state) {
  Cpu backend;
  Config config;
  config.family = Family::formula;
  const auto batch = generate(backend, config, 1, 0, 64);
  for (auto _ : state) {
    DLManagedTensorVersioned* tensor = to_dlpack_versioned(batch.x);
    benchmark::DoNotOptimize(tensor->dl_tensor.data);
    tensor->deleter(tensor);
  }
}
BENCHMARK(hand_over)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ferrite::bench
