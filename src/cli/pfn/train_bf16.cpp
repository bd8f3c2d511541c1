#include "cli/pfn/train_run.hpp"
#include "ferrite/decorators/autocast.hpp"

namespace ferrite::cli::pfn {

int train_bf16(const AnyBackend& backend, const TrainOptions& options) {
  return train_on(Autodiff<Autocast<AnyBackend>>(Autocast<AnyBackend>(backend)), options);
}

}  // namespace ferrite::cli::pfn
