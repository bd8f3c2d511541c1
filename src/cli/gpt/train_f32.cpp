#include "cli/gpt/bench_run.hpp"
#include "cli/gpt/train_run.hpp"

namespace ferrite::cli::gpt {

int train_f32(const AnyBackend& backend, TrainingRanks& ranks, const TrainOptions& options) {
  return train_on(Autodiff<AnyBackend>(backend), ranks, options);
}

BenchResult bench_f32(const AnyBackend& backend, const BenchOptions& options, std::int64_t batch) {
  return measure_steps(Autodiff<AnyBackend>(backend), options, batch);
}

}  // namespace ferrite::cli::gpt
