// cuSOLVER and cuBLAS of one GPU, for linear algebra: handles on the compute stream, for one thread at a
// time, and their functions by the type of the elements. Matrices are column-major: they see the transpose of
// ours.
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <mutex>

#include "backend_cuda/runtime/device_context.hpp"

namespace ferrite::cuda {

[[noreturn]] void throw_error(cusolverStatus_t status, std::string_view op);
inline void check(cusolverStatus_t status, std::string_view op) {
  if (status != CUSOLVER_STATUS_SUCCESS) [[unlikely]]
    throw_error(status, op);
}

class Solver {
 public:
  /// The first user loads the libraries, which takes some 0.1 s.
  explicit Solver(DeviceContext& context);
  cusolverDnHandle_t dense() const { return dense_; }
  cublasHandle_t triangles() const { return triangles_; }

 private:
  std::unique_lock<std::mutex> lock_;
  cusolverDnHandle_t dense_;
  cublasHandle_t triangles_;
};

template <class T>
struct SolverCalls;
#define FERRITE_SOLVER_CALLS(T, X)                                                       \
  template <>                                                                            \
  struct SolverCalls<T> {                                                                \
    static constexpr auto trsm = cublas##X##trsm_v2;                                     \
    static constexpr auto trsm_batched = cublas##X##trsmBatched;                         \
    static constexpr auto getrf_batched = cublas##X##getrfBatched;                       \
    static constexpr auto potrf_size = cusolverDn##X##potrf_bufferSize;                  \
    static constexpr auto potrf = cusolverDn##X##potrf;                                  \
    static constexpr auto potrf_batched = cusolverDn##X##potrfBatched;                   \
    static constexpr auto getrf_size = cusolverDn##X##getrf_bufferSize;                  \
    static constexpr auto getrf = cusolverDn##X##getrf;                                  \
    static constexpr auto geqrf_size = cusolverDn##X##geqrf_bufferSize;                  \
    static constexpr auto geqrf = cusolverDn##X##geqrf;                                  \
    static constexpr auto orgqr_size = cusolverDn##X##orgqr_bufferSize;                  \
    static constexpr auto orgqr = cusolverDn##X##orgqr;                                  \
    static constexpr auto syevd_size = cusolverDn##X##syevd_bufferSize;                  \
    static constexpr auto syevd = cusolverDn##X##syevd;                                  \
    static constexpr auto syevj_batched_size = cusolverDn##X##syevjBatched_bufferSize;   \
    static constexpr auto syevj_batched = cusolverDn##X##syevjBatched;                   \
    static constexpr auto gesvdj_size = cusolverDn##X##gesvdj_bufferSize;                \
    static constexpr auto gesvdj = cusolverDn##X##gesvdj;                                \
    static constexpr auto gesvdj_batched_size = cusolverDn##X##gesvdjBatched_bufferSize; \
    static constexpr auto gesvdj_batched = cusolverDn##X##gesvdjBatched;                 \
  };
FERRITE_SOLVER_CALLS(float, S)
FERRITE_SOLVER_CALLS(double, D)
#undef FERRITE_SOLVER_CALLS

}  // namespace ferrite::cuda
