// Loads cuSOLVER and cuBLAS when linear algebra first needs them, as runtime/dlopen_libraries.cpp loads
// cuBLASLt.
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <fmt/format.h>

#include "backend_cuda/runtime/dlopen_library.hpp"

namespace ferrite::cuda {
namespace {

const DlopenLibrary& triangles() {
  static const DlopenLibrary* const library =
      new DlopenLibrary(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR));
  return *library;
}
const DlopenLibrary& solver() {
  static const DlopenLibrary* const library =
      new DlopenLibrary(fmt::format("libcusolver.so.{}", CUSOLVER_VER_MAJOR));
  return *library;
}

}  // namespace
}  // namespace ferrite::cuda

using Blas = cublasHandle_t;
using Dense = cusolverDnHandle_t;
using Fill = cublasFillMode_t;
using Vectors = cusolverEigMode_t;

extern "C" {

FERRITE_FORWARD(triangles, cublasStatus_t, cublasCreate_v2, (Blas * handle), (handle))
FERRITE_FORWARD(triangles, cublasStatus_t, cublasSetStream_v2, (Blas handle, cudaStream_t stream),
                (handle, stream))

#define FERRITE_TRIANGLES(T, name_trsm, name_batched, name_factors)                                       \
  FERRITE_FORWARD(triangles, cublasStatus_t, name_trsm,                                                   \
                  (Blas handle, cublasSideMode_t side, Fill fill, cublasOperation_t turn,                 \
                   cublasDiagType_t d, int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb), \
                  (handle, side, fill, turn, d, m, n, alpha, a, lda, b, ldb))                             \
  FERRITE_FORWARD(                                                                                        \
      triangles, cublasStatus_t, name_batched,                                                            \
      (Blas handle, cublasSideMode_t side, Fill fill, cublasOperation_t turn, cublasDiagType_t d, int m,  \
       int n, const T* alpha, const T* const a[], int lda, T* const b[], int ldb, int count),             \
      (handle, side, fill, turn, d, m, n, alpha, a, lda, b, ldb, count))                                  \
  FERRITE_FORWARD(triangles, cublasStatus_t, name_factors,                                                \
                  (Blas handle, int n, T* const a[], int lda, int* swaps, int* info, int count),          \
                  (handle, n, a, lda, swaps, info, count))
FERRITE_TRIANGLES(float, cublasStrsm_v2, cublasStrsmBatched, cublasSgetrfBatched)
FERRITE_TRIANGLES(double, cublasDtrsm_v2, cublasDtrsmBatched, cublasDgetrfBatched)
#undef FERRITE_TRIANGLES

FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnCreate, (Dense * handle), (handle))
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnSetStream, (Dense handle, cudaStream_t stream),
                (handle, stream))
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnCreateSyevjInfo, (syevjInfo_t * info), (info))
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnDestroySyevjInfo, (syevjInfo_t info), (info))
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnCreateGesvdjInfo, (gesvdjInfo_t * info), (info))
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnDestroyGesvdjInfo, (gesvdjInfo_t info), (info))

FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnCreateParams, (cusolverDnParams_t * params), (params))
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnDestroyParams, (cusolverDnParams_t params), (params))
#if CUSOLVER_VERSION >= 11701
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnXsyevBatched_bufferSize,
                (Dense handle, cusolverDnParams_t params, Vectors job, Fill fill, std::int64_t n,
                 cudaDataType type_a, const void* a, std::int64_t lda, cudaDataType type_w, const void* w,
                 cudaDataType compute, std::size_t* device_bytes, std::size_t* host_bytes,
                 std::int64_t count),
                (handle, params, job, fill, n, type_a, a, lda, type_w, w, compute, device_bytes, host_bytes,
                 count))
FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDnXsyevBatched,
                (Dense handle, cusolverDnParams_t params, Vectors job, Fill fill, std::int64_t n,
                 cudaDataType type_a, void* a, std::int64_t lda, cudaDataType type_w, void* w,
                 cudaDataType compute, void* device_work, std::size_t device_bytes, void* host_work,
                 std::size_t host_bytes, int* info, std::int64_t count),
                (handle, params, job, fill, n, type_a, a, lda, type_w, w, compute, device_work, device_bytes,
                 host_work, host_bytes, info, count))
#endif

#define FERRITE_SOLVER(T, X)                                                                                 \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##potrf_bufferSize,                                 \
                  (Dense handle, Fill fill, int n, T* a, int lda, int* size),                                \
                  (handle, fill, n, a, lda, size))                                                           \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##potrf,                                            \
                  (Dense handle, Fill fill, int n, T* a, int lda, T* work, int size, int* info),             \
                  (handle, fill, n, a, lda, work, size, info))                                               \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##potrfBatched,                                     \
                  (Dense handle, Fill fill, int n, T* a[], int lda, int* info, int count),                   \
                  (handle, fill, n, a, lda, info, count))                                                    \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##getrf_bufferSize,                                 \
                  (Dense handle, int m, int n, T* a, int lda, int* size), (handle, m, n, a, lda, size))      \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##getrf,                                            \
                  (Dense handle, int m, int n, T* a, int lda, T* work, int* swaps, int* info),               \
                  (handle, m, n, a, lda, work, swaps, info))                                                 \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##geqrf_bufferSize,                                 \
                  (Dense handle, int m, int n, T* a, int lda, int* size), (handle, m, n, a, lda, size))      \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##geqrf,                                            \
                  (Dense handle, int m, int n, T* a, int lda, T* tau, T* work, int size, int* info),         \
                  (handle, m, n, a, lda, tau, work, size, info))                                             \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##orgqr_bufferSize,                                 \
                  (Dense handle, int m, int n, int k, const T* a, int lda, const T* tau, int* size),         \
                  (handle, m, n, k, a, lda, tau, size))                                                      \
  FERRITE_FORWARD(                                                                                           \
      solver, cusolverStatus_t, cusolverDn##X##orgqr,                                                        \
      (Dense handle, int m, int n, int k, T* a, int lda, const T* tau, T* work, int size, int* info),        \
      (handle, m, n, k, a, lda, tau, work, size, info))                                                      \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##syevd_bufferSize,                                 \
                  (Dense handle, Vectors job, Fill fill, int n, const T* a, int lda, const T* w, int* size), \
                  (handle, job, fill, n, a, lda, w, size))                                                   \
  FERRITE_FORWARD(                                                                                           \
      solver, cusolverStatus_t, cusolverDn##X##syevd,                                                        \
      (Dense handle, Vectors job, Fill fill, int n, T* a, int lda, T* w, T* work, int size, int* info),      \
      (handle, job, fill, n, a, lda, w, work, size, info))                                                   \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##syevjBatched_bufferSize,                          \
                  (Dense handle, Vectors job, Fill fill, int n, const T* a, int lda, const T* w, int* size,  \
                   syevjInfo_t params, int count),                                                           \
                  (handle, job, fill, n, a, lda, w, size, params, count))                                    \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##syevjBatched,                                     \
                  (Dense handle, Vectors job, Fill fill, int n, T* a, int lda, T* w, T* work, int size,      \
                   int* info, syevjInfo_t params, int count),                                                \
                  (handle, job, fill, n, a, lda, w, work, size, info, params, count))                        \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##gesvdj_bufferSize,                                \
                  (Dense handle, Vectors job, int econ, int m, int n, const T* a, int lda, const T* s,       \
                   const T* u, int ldu, const T* v, int ldv, int* size, gesvdjInfo_t params),                \
                  (handle, job, econ, m, n, a, lda, s, u, ldu, v, ldv, size, params))                        \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##gesvdj,                                           \
                  (Dense handle, Vectors job, int econ, int m, int n, T* a, int lda, T* s, T* u, int ldu,    \
                   T* v, int ldv, T* work, int size, int* info, gesvdjInfo_t params),                        \
                  (handle, job, econ, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, params))            \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##gesvdjBatched_bufferSize,                         \
                  (Dense handle, Vectors job, int m, int n, const T* a, int lda, const T* s, const T* u,     \
                   int ldu, const T* v, int ldv, int* size, gesvdjInfo_t params, int count),                 \
                  (handle, job, m, n, a, lda, s, u, ldu, v, ldv, size, params, count))                       \
  FERRITE_FORWARD(solver, cusolverStatus_t, cusolverDn##X##gesvdjBatched,                                    \
                  (Dense handle, Vectors job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* v,        \
                   int ldv, T* work, int size, int* info, gesvdjInfo_t params, int count),                   \
                  (handle, job, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, params, count))
FERRITE_SOLVER(float, S)
FERRITE_SOLVER(double, D)
#undef FERRITE_SOLVER

}  // extern "C"
