#include "cli/pfn/train_run.hpp"
#include "ferrite/decorators/autocast.hpp"

namespace ferrite::cli::pfn {

int train_bf16(const AnyBackend& backend, TrainingRanks& ranks, const TrainOptions& options) {
  return train_on(Autodiff<Autocast<AnyBackend>>(Autocast<AnyBackend>(backend)), ranks, options);
}

}  // namespace ferrite::cli::pfn
