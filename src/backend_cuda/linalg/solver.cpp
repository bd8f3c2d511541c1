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
  context.refuse_aside(OpScope::current());
  Handles& handles = handles_of(context.index());
  if (!handles.triangles) {
    const DeviceGuard device(context.index());
    const OutsideCapture outside;
    const CompileScope starting("start cuSOLVER");
    if (!handles.dense) {  // or else an earlier try got this far
      cusolverDnHandle_t dense = nullptr;
      check(cusolverDnCreate(&dense), "linear algebra");
      check(cusolverDnSetStream(dense, context.stream()), "linear algebra");
      handles.dense = dense;
    }
    cublasHandle_t triangles = nullptr;
    check(cublasCreate_v2(&triangles), "linear algebra");
    check(cublasSetStream_v2(triangles, context.stream()), "linear algebra");
    handles.triangles = triangles;
  }
  dense_ = handles.dense;
  triangles_ = handles.triangles;
}

}  // namespace ferrite::cuda
