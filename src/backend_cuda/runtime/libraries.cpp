// Handles of the NVIDIA libraries, their errors, and the environment that tuning results are valid in.
#include "backend_cuda/runtime/libraries.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/outside_capture.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite {

std::vector<std::string> Cuda::warnings() const { return cuda::Libraries::of(*context_).tuner().warnings(); }

}  // namespace ferrite

namespace ferrite::cuda {
namespace {

std::string tuning_environment(const DeviceContext& context) {
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "autotune");
  check(cudaRuntimeGetVersion(&runtime), "autotune");
  const cudaDeviceProp& gpu = context.properties();
  return fmt::format("{} ({} SMs), driver {}, CUDA {}, cuBLASLt {}, cuDNN {}", gpu.name,
                     gpu.multiProcessorCount, driver, runtime, cublasLtGetVersion(), cudnnGetVersion());
}

}  // namespace

void throw_error(cublasStatus_t status, std::string_view op) {
  check_context(op);
  const std::string text = fmt::format("[{}] cuBLASLt {} ({}): the product failed", op,
                                       cublasLtGetStatusName(status), cublasLtGetStatusString(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(text);
  throw BackendError(text);
}

void throw_error(cudnnStatus_t status, std::string_view op) {
  check_context(op);
  const std::string text = fmt::format("[{}] cuDNN {}: the call failed", op, cudnnGetErrorString(status));
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    throw OutOfMemory(text);
  throw BackendError(text);
}

Libraries& Libraries::of(DeviceContext& context) {
  context.refuse_aside(OpScope::current());
  constexpr int most = 64;
  static std::array<std::atomic<Libraries*>, most> all{};
  auto& slot = all.at(static_cast<std::size_t>(context.index()));
  if (Libraries* const made = slot.load(std::memory_order_acquire)) return *made;
  static std::mutex making;
  const std::lock_guard guard(making);
  if (!slot.load(std::memory_order_relaxed)) slot.store(new Libraries(context), std::memory_order_release);
  return *slot.load(std::memory_order_relaxed);
}

Libraries::Libraries(DeviceContext& context)
    : context_(context), tuner_(tuning_environment(context), AutotuneOptions::from_environment()) {
  const DeviceGuard device(context.index());
  const OutsideCapture outside;
  const OpScope scope("cublas workspace");
  const CompileScope starting("start cuBLASLt");
  check(cublasLtCreate(&blas_), "matmul");
  workspace_ = context.common_pool().allocate(workspace_bytes);  // not from the arena of a capture
}

Libraries::Dnn::Dnn(Libraries& libraries) : lock_(libraries.dnn_mutex_), handle_(libraries.dnn_) {
  if (handle_) return;
  const DeviceGuard device(libraries.context_.index());
  const OutsideCapture outside;
  const CompileScope starting("start cuDNN");
  check(cudnnCreate(&handle_), "conv2d");
  check(cudnnSetStream(handle_, libraries.context_.stream()), "conv2d");
  libraries.dnn_ = handle_;
}

}  // namespace ferrite::cuda
