// cuBLASLt and cuDNN of one GPU: handles, workspace, and their tuning results. Made at first use and never
// destroyed, like the context they belong to.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <mutex>

#include "backend_cuda/dnn/attention_plans.hpp"
#include "backend_cuda/dnn/conv_plans.hpp"
#include "backend_cuda/gemm/plan_cache.hpp"
#include "backend_cuda/runtime/autotune.hpp"
#include "backend_cuda/runtime/device_context.hpp"

namespace ferrite::cuda {

/// BackendError (OutOfMemory if the library ran out of it): "[matmul] cuBLASLt CUBLAS_STATUS_X (text)".
[[noreturn]] void throw_error(cublasStatus_t status, std::string_view op);
[[noreturn]] void throw_error(cudnnStatus_t status, std::string_view op);
inline void check(cublasStatus_t status, std::string_view op) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw_error(status, op);
}
inline void check(cudnnStatus_t status, std::string_view op) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    throw_error(status, op);
}

class Libraries {
 public:
  static Libraries& of(DeviceContext& context);

  /// Any thread may use it: cuBLASLt keeps no state in it.
  cublasLtHandle_t blas() const { return blas_; }
  /// For products: the compute stream runs one at a time.
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  void* workspace() const { return workspace_->data(); }
  PlanCache& plans() { return plans_; }
  ConvPlans& convolutions() { return convolutions_; }
  AttentionPlans& attention() { return attention_; }
  Autotuner& tuner() { return tuner_; }

  /// cuDNN with its stream set, for one thread at a time. The first user loads it, which takes some 0.1 s.
  class Dnn {
   public:
    explicit Dnn(Libraries& libraries);
    cudnnHandle_t handle() const { return handle_; }

   private:
    std::unique_lock<std::mutex> lock_;
    cudnnHandle_t handle_;
  };

 private:
  explicit Libraries(DeviceContext& context);

  DeviceContext& context_;
  cublasLtHandle_t blas_ = nullptr;
  std::shared_ptr<Buffer> workspace_;
  Autotuner tuner_;
  PlanCache plans_;
  ConvPlans convolutions_;
  AttentionPlans attention_;
  std::mutex dnn_mutex_;
  cudnnHandle_t dnn_ = nullptr;
};

}  // namespace ferrite::cuda
