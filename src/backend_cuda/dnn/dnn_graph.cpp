// Graphs of cuDNN: descriptors of tensors and operations, and the choice of an engine.
#include "backend_cuda/dnn/dnn_graph.hpp"

#include "backend_cuda/runtime/libraries.hpp"

namespace ferrite::cuda {

DnnGraph::Id DnnGraph::describe(Kind kind, const Extents& shape, const Extents& strides,
                                cudnnDataType_t type) {
  const auto id = static_cast<Id>(tensors_.size()) + 1;
  DnnDescriptor& tensor = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, kind == Kind::value);
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, kind == Kind::scalar);
  refused_ = !tensor.finalize() || refused_;
  return id;
}

DnnGraph::Id DnnGraph::tensor(const Extents& shape, const Extents& strides, cudnnDataType_t type) {
  return describe(Kind::memory, shape, strides, type);
}
DnnGraph::Id DnnGraph::value(const Extents& shape, const Extents& strides, cudnnDataType_t type) {
  return describe(Kind::value, shape, strides, type);
}
DnnGraph::Id DnnGraph::value(const Extents& shape, cudnnDataType_t type) {
  return value(shape, {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}, type);
}
DnnGraph::Id DnnGraph::scalar(float constant) {
  scalars_.push_back(constant);
  return scalar_ids_.emplace_back(describe(Kind::scalar, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT));
}

void DnnGraph::add(DnnDescriptor kind, DnnDescriptor operation) {
  refused_ = !operation.finalize() || refused_;
  kinds_.push_back(std::move(kind));
  operations_.push_back(std::move(operation));
}

void DnnGraph::matmul(Id a, Id b, Id c) {
  DnnDescriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  refused_ = !product.finalize() || refused_;
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, part(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, part(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, part(c));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
  add(std::move(product), std::move(operation));
}

void DnnGraph::pointwise(cudnnPointwiseMode_t mode, Id y, Id x, Id b, Id t, cudnnDataType_t math,
                         std::int64_t axis) {
  DnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, math);
  if (axis >= 0) function.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  refused_ = !function.finalize() || refused_;
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, part(x));
  if (b != 0) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, part(b));
  if (t != 0) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, part(t));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, part(y));
  add(std::move(function), std::move(operation));
}

void DnnGraph::reduce(cudnnReduceTensorOp_t operator_, Id y, Id x) {
  DnnDescriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operator_);
  reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  refused_ = !reduction.finalize() || refused_;
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, part(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, part(y));
  add(std::move(reduction), std::move(operation));
}

void DnnGraph::reshape(Id y, Id x) {
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, part(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, part(y));
  refused_ = !operation.finalize() || refused_;
  operations_.push_back(std::move(operation));
}

std::optional<DnnPlan> DnnGraph::plan(Libraries& libraries, std::size_t most_workspace) {
  if (refused_) return {};
  auto parts = std::make_shared<std::vector<DnnDescriptor>>();
  DnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  {
    const Libraries::Dnn dnn(libraries);
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const DnnDescriptor& operation : operations_) operations.push_back(operation.get());
    DnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, dnn.handle());
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              std::span<const cudnnBackendDescriptor_t>(operations));
    if (!graph.finalize()) return {};
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
    if (!heuristic.finalize()) return {};
    for (auto* some : {&tensors_, &kinds_, &operations_})
      for (DnnDescriptor& one : *some) parts->push_back(std::move(one));
    parts->push_back(std::move(graph));
  }
  for (const DnnDescriptor& config :
       heuristic.list(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 16)) {
    if (auto plan = build_plan(libraries, parts, config, most_workspace)) return plan;
  }
  return {};
}

}  // namespace ferrite::cuda
