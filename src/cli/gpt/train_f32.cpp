#include "cli/gpt/train_run.hpp"

namespace ferrite::cli::gpt {

int train_f32(const AnyBackend& backend, const TrainOptions& options) {
  return train_on(Autodiff<AnyBackend>(backend), options);
}

}  // namespace ferrite::cli::gpt
