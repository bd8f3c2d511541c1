// Handles of cuSOLVER and cuBLAS, made once for each GPU.
#include "backend_cuda/linalg/solver.hpp"

#include <fmt/format.h>

#include <array>

#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/libraries.hpp"
#include "backend_cuda/runtime/outside_capture.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {

namespace {
struct Handles {
  std::mutex mutex;
  cusolverDnHandle_t dense = nullptr;
  cublasHandle_t triangles = nullptr;
};
Handles& handles_of(int device) {
  static auto* const all = new std::array<Handles, 64>;  // never destroyed, like the GPUs' contexts
  return all->at(static_cast<std::size_t>(device));
}
}  // namespace

void throw_error(cusolverStatus_t status, std::string_view op) {
  check_context(op);
  const std::string text =
      fmt::format("[{}] cuSOLVER status {}: the call failed", op, static_cast<int>(status));
  if (status == CUSOLVER_STATUS_ALLOC_FAILED) throw OutOfMemory(text);
  throw BackendError(text);
}

Solver::Solver(DeviceContext& context) : lock_(handles_of(context.index()).mutex) {
  Handles& handles = handles_of(context.index());
  if (!handles.triangles) {
    const DeviceGuard device(context.index());
    const OutsideCapture outside;
    const CompileScope starting("start cuSOLVER");
    check(cusolverDnCreate(&handles.dense), "linear algebra");
    check(cusolverDnSetStream(handles.dense, context.stream()), "linear algebra");
    check(cublasCreate_v2(&handles.triangles), "linear algebra");
    check(cublasSetStream_v2(handles.triangles, context.stream()), "linear algebra");
  }
  dense_ = handles.dense;
  triangles_ = handles.triangles;
}

}  // namespace ferrite::cuda
