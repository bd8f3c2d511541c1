#include "cli/gpt/bench_run.hpp"
#include "cli/gpt/train_run.hpp"
#include "ferrite/decorators/autocast.hpp"

namespace ferrite::cli::gpt {

int train_16bit(const AnyBackend& backend, TrainingRanks& ranks, DType dtype, const TrainOptions& options) {
  const Autocast<AnyBackend> lowered(AutocastConfig{}.with_dtype(dtype), backend);
  return train_on(Autodiff<Autocast<AnyBackend>>(lowered), ranks, options);
}

BenchResult bench_bf16(const AnyBackend& backend, const BenchOptions& options, std::int64_t batch) {
  return measure_steps(Autodiff<Autocast<AnyBackend>>(Autocast<AnyBackend>(backend)), options, batch);
}

}  // namespace ferrite::cli::gpt
