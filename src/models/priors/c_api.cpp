// The C interface: exceptions become a return value and a message.
#include <memory>
#include <string>

#include "ferrite/interop/dlpack.hpp"
#include "ferrite/models/priors/priors.h"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::priors {
namespace {

thread_local std::string last_error;

int failed(const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {  // no memory even for the message
    last_error.clear();
  }
  return 1;
}

struct CallDeleter {
  void operator()(DLManagedTensor* tensor) const { tensor->deleter(tensor); }
};

void export_batch(AnyBackend backend, const op::PriorDatasets& op, DLManagedTensor** out) {
  const Batch<AnyBackend> batch = generate(backend, op.config, op.seed, op.first, op.count);
  const Tensor<AnyBackend>* tensors[] = {&batch.x,      &batch.y,   &batch.row_mask, &batch.feature_mask,
                                         &batch.levels, &batch.info};
  std::unique_ptr<DLManagedTensor, CallDeleter> exports[FERRITE_PRIOR_TENSORS];
  for (int i = 0; i < FERRITE_PRIOR_TENSORS; ++i) exports[i].reset(to_dlpack(*tensors[i]));
  for (int i = 0; i < FERRITE_PRIOR_TENSORS; ++i) out[i] = exports[i].release();
}

}  // namespace
}  // namespace ferrite::priors

int ferrite_priors_generate(const char* backend, const char* config, uint64_t seed, int64_t first,
                            int64_t count, DLManagedTensor* out[FERRITE_PRIOR_TENSORS]) {
  using namespace ferrite::priors;
  if (!backend || !config || !out)
    return failed("[priors] a null pointer: needs a backend, a config and out");
  try {
    export_batch(ferrite::AnyBackend(backend), {Config::from_json(config), seed, first, count}, out);
    return 0;
  } catch (const std::exception& e) {
    return failed(e.what());
  } catch (...) {
    return failed("[priors] an exception of unknown type");
  }
}

const char* ferrite_priors_error(void) { return ferrite::priors::last_error.c_str(); }
