// Loads cuBLASLt and cuDNN when their first function is called. If they were linked, their half gigabyte of
// code would cost every program that uses ferrite 60 ms at its start, with or without a GPU. This file
// defines the functions that their headers declare, hidden inside this library; each looks up the real
// function and forwards the call.
#include <cublasLt.h>
#include <cublas_api.h>
#include <cudnn.h>
#include <fmt/format.h>

#include "backend_cuda/runtime/dlopen_library.hpp"

namespace ferrite::cuda {
namespace {

const DlopenLibrary& blas() {
  static const DlopenLibrary* const library =
      new DlopenLibrary(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR));
  return *library;
}
const DlopenLibrary& dnn() {
  static const DlopenLibrary* const library = new DlopenLibrary(fmt::format("libcudnn.so.{}", CUDNN_MAJOR));
  return *library;
}

}  // namespace
}  // namespace ferrite::cuda

extern "C" {

FERRITE_FORWARD(blas, cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), (handle))
FERRITE_FORWARD(blas, const char*, cublasLtGetStatusName, (cublasStatus_t status), (status))
FERRITE_FORWARD(blas, const char*, cublasLtGetStatusString, (cublasStatus_t status), (status))
FERRITE_FORWARD(blas, std::size_t, cublasLtGetVersion, (), ())
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatmul,
                (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                 cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                 const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                 cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                 std::size_t workspace_bytes, cudaStream_t stream),
                (handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algo,
                 workspace, workspace_bytes, stream))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatmulAlgoConfigGetAttribute,
                (const cublasLtMatmulAlgo_t* algo, cublasLtMatmulAlgoConfigAttributes_t attribute, void* data,
                 std::size_t bytes, std::size_t* written),
                (algo, attribute, data, bytes, written))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
                (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                 cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t results[],
                 int* found),
                (handle, desc, a, b, c, d, preference, wanted, results, found))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatmulDescInit_internal,
                (cublasLtMatmulDesc_t desc, std::size_t bytes, cublasComputeType_t compute,
                 cudaDataType_t scale),
                (desc, bytes, compute, scale))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatmulDescSetAttribute,
                (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void* data,
                 std::size_t bytes),
                (desc, attribute, data, bytes))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatmulPreferenceInit_internal,
                (cublasLtMatmulPreference_t preference, std::size_t bytes), (preference, bytes))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
                (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                 const void* data, std::size_t bytes),
                (preference, attribute, data, bytes))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatrixLayoutInit_internal,
                (cublasLtMatrixLayout_t layout, std::size_t bytes, cudaDataType type, std::uint64_t rows,
                 std::uint64_t columns, std::int64_t stride),
                (layout, bytes, type, rows, columns, stride))
FERRITE_FORWARD(blas, cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
                (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* data,
                 std::size_t bytes),
                (layout, attribute, data, bytes))

FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnCreate, (cudnnHandle_t * handle), (handle))
FERRITE_FORWARD(dnn, const char*, cudnnGetErrorString, (cudnnStatus_t status), (status))
FERRITE_FORWARD(dnn, std::size_t, cudnnGetVersion, (), ())
FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream),
                (handle, stream))
FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnBackendCreateDescriptor,
                (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor), (type, descriptor))
FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor),
                (descriptor))
FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnBackendExecute,
                (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variables),
                (handle, plan, variables))
FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))
FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnBackendGetAttribute,
                (const cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, std::int64_t wanted, std::int64_t* count, void* elements),
                (descriptor, name, type, wanted, count, elements))
FERRITE_FORWARD(dnn, cudnnStatus_t, cudnnBackendSetAttribute,
                (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, std::int64_t count, const void* elements),
                (descriptor, name, type, count, elements))

}  // extern "C"
