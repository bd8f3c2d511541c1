// Building and running plans of cuDNN.
#include "backend_cuda/dnn/dnn_plan.hpp"

#include "backend_cuda/runtime/libraries.hpp"

namespace ferrite::cuda {

cudnnDataType_t dnn_data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDNN_DATA_DOUBLE;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

std::optional<DnnPlan> build_plan(Libraries& libraries, const DnnParts& parts, const DnnDescriptor& config,
                                  std::size_t most_workspace) {
  const Libraries::Dnn dnn(libraries);
  DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, dnn.handle());
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.finalize()) return {};
  const auto workspace = static_cast<std::size_t>(
      plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64));
  if (workspace > most_workspace) return {};
  return DnnPlan{parts, std::move(plan), workspace};
}

void execute(Libraries& libraries, const Call& call, const DnnPlan& plan, std::span<const std::int64_t> ids,
             std::span<void* const> pointers) {
  const Scratch<std::byte> workspace(call, static_cast<std::int64_t>(plan.workspace));
  const Libraries::Dnn dnn(libraries);
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  void* const space = plan.workspace > 0 ? workspace.data() : nullptr;
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, space);
  check(pack.finalize() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM, call.op());
  check(cudnnBackendExecute(dnn.handle(), plan.plan.get(), pack.get()), call.op());
}

}  // namespace ferrite::cuda
