// The C interface: exceptions become a return value and a message.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/interop/dlpack.hpp"
#include "ferrite/models/priors/priors.h"
#include "ferrite/models/priors/priors.hpp"

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

template <class B>
void export_batch(B& backend, const op::PriorDatasets& op, DLManagedTensor** out) {
  const Batch<B> batch = generate(backend, op.config, op.seed, op.first, op.count);
  const Tensor<B>* tensors[] = {&batch.x,      &batch.y,   &batch.row_mask, &batch.feature_mask,
                                &batch.levels, &batch.info};
  std::unique_ptr<DLManagedTensor, CallDeleter> exports[FERRITE_PRIOR_TENSORS];
  for (int i = 0; i < FERRITE_PRIOR_TENSORS; ++i) exports[i].reset(to_dlpack(*tensors[i]));
  for (int i = 0; i < FERRITE_PRIOR_TENSORS; ++i) out[i] = exports[i].release();
}

int cuda_index(std::string_view name) {
  int index = 0;
  if (name == "cuda") return 0;
  const std::string_view digits = name.substr(name.find(':') + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (!name.starts_with("cuda:") || error != std::errc{} || end != digits.data() + digits.size())
    throw ValueError(fmt::format("[priors] backend '{}': must be reference, cpu, cuda or cuda:N", name));
  return index;
}

void generate_on(std::string_view name, const op::PriorDatasets& op, DLManagedTensor** out) {
  if (name == "cpu") {
    Cpu backend;
    return export_batch(backend, op, out);
  }
  if (name == "reference") {
    Reference backend;
    return export_batch(backend, op, out);
  }
  Cuda backend(cuda_index(name));  // throws where there is none, and says why
#if FERRITE_HAS_CUDA
  export_batch(backend, op, out);
#endif
}

}  // namespace
}  // namespace ferrite::priors

int ferrite_priors_generate(const char* backend, const char* config, uint64_t seed, int64_t first,
                            int64_t count, DLManagedTensor* out[FERRITE_PRIOR_TENSORS]) {
  using namespace ferrite::priors;
  if (!backend || !config || !out)
    return failed("[priors] a null pointer: needs a backend, a config and out");
  try {
    generate_on(backend, {Config::from_json(config), seed, first, count}, out);
    return 0;
  } catch (const std::exception& e) {
    return failed(e.what());
  } catch (...) {
    return failed("[priors] an exception of unknown type");
  }
}

const char* ferrite_priors_error(void) { return ferrite::priors::last_error.c_str(); }
