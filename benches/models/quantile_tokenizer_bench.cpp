// The tokenizer on a table of 1,000,000 x 20 f32: fit and transform in memory, and from a CSV file to tokens.
// benches/peers/quantile_tokenizer.py measures scikit-learn and pandas on the same files, which it names by
// FERRITE_TOKENIZER_NPY, FERRITE_TOKENIZER_CSV and, with numbers of 17 digits, FERRITE_TOKENIZER_LONG_CSV;
// without them the data are random and CSV is left out.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "ferrite/io/npy.hpp"
#include "ferrite/models/quantile_tokenizer/table_tokenizer.hpp"

namespace ferrite::quantile_tokenizer {
namespace {

const TokenizerConfig config = TokenizerConfig{}.with_bins(100);

Tensor<Cpu> table(Cpu& b) {
  if (const char* path = std::getenv("FERRITE_TOKENIZER_NPY")) return from_host(b, read_npy(path));
  Rng rng(1);
  return randn(b, {1'000'000, 20}, rng);
}

void fit(benchmark::State& state) {
  Cpu b;
  const Tensor<Cpu> x = table(b);
  for (auto _ : state) benchmark::DoNotOptimize(QuantileTokenizer::fit(x, config));
  state.SetItemsProcessed(state.iterations() * x.numel());
}
void transform(benchmark::State& state) {
  Cpu b;
  const Tensor<Cpu> x = table(b);
  const auto fitted = QuantileTokenizer::fit(x, config);
  for (auto _ : state) benchmark::DoNotOptimize(fitted.transform(x));
  state.SetItemsProcessed(state.iterations() * x.numel());
}
void fit_transform(benchmark::State& state) {
  Cpu b;
  const Tensor<Cpu> x = table(b);
  for (auto _ : state) benchmark::DoNotOptimize(QuantileTokenizer::fit_transform(x, config));
  state.SetItemsProcessed(state.iterations() * x.numel());
}
/// Parsed once, kept in memory between fit and transform.
void csv_to_tokens(benchmark::State& state, const char* variable) {
  const char* path = std::getenv(variable);
  if (!path) return state.SkipWithError("the variable with the path of the file is not set");
  Cpu b;
  TableEngineOn<Cpu> engine(b);
  for (auto _ : state) {
    const auto source = kept_in_memory(open_table(path), std::int64_t{4} << 30);
    const auto fitted = TableTokenizer::fit(*source, engine, {config});
    source->rewind();
    while (const auto chunk = source->next()) benchmark::DoNotOptimize(fitted.transform(*chunk, engine));
  }
}

BENCHMARK(fit)->Name("tokenizer/fit")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(transform)->Name("tokenizer/transform")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(fit_transform)->Name("tokenizer/fit_transform")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(csv_to_tokens, csv, "FERRITE_TOKENIZER_CSV")
    ->Name("tokenizer/csv_to_tokens")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(csv_to_tokens, long_csv, "FERRITE_TOKENIZER_LONG_CSV")
    ->Name("tokenizer/long_csv_to_tokens")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace ferrite::quantile_tokenizer
