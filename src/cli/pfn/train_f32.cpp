#include "cli/pfn/train_run.hpp"

namespace ferrite::cli::pfn {

int train_f32(const AnyBackend& backend, TrainingRanks& ranks, const TrainOptions& options) {
  return train_on(Autodiff<AnyBackend>(backend), ranks, options);
}

}  // namespace ferrite::cli::pfn
