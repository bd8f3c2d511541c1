// DnnGraph: several operations that cuDNN is to run as one kernel. Tensors first, then operations on them in
// the order of their data; values between two operations stay in registers.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "backend_cuda/dnn/dnn_plan.hpp"

namespace ferrite::cuda {

class DnnGraph {
 public:
  using Extents = std::array<std::int64_t, 4>;
  /// The number of a tensor, counted from 1: its unique id for cuDNN.
  using Id = std::int64_t;

  /// An array in memory.
  Id tensor(const Extents& shape, const Extents& strides, cudnnDataType_t type);
  /// A result that is never written; row-major unless it has strides of its own.
  Id value(const Extents& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  Id value(const Extents& shape, const Extents& strides, cudnnDataType_t type);
  /// A constant of the graph.
  Id scalar(float constant);

  /// c = a b
  void matmul(Id a, Id b, Id c);
  /// y = mode(x), mode(x, b) or mode(x, b, t); 0 stands for no tensor. `math` is the dtype it
  /// computes in.
  void pointwise(cudnnPointwiseMode_t mode, Id y, Id x, Id b = 0, Id t = 0,
                 cudnnDataType_t math = CUDNN_DATA_FLOAT, std::int64_t axis = -1);
  /// y = the index along an axis of each element of x
  void index(int axis, Id y, Id x) {
    pointwise(CUDNN_POINTWISE_GEN_INDEX, y, x, 0, 0, CUDNN_DATA_FLOAT, axis);
  }
  /// Along the axes that have an extent of 1 in y.
  void reduce(cudnnReduceTensorOp_t operation, Id y, Id x);
  /// The same elements by the shape and strides of y.
  void reshape(Id y, Id x);

  /// A plan by the first of cuDNN's proposals that works; nothing if there is none.
  std::optional<DnnPlan> plan(Libraries& libraries, std::size_t most_workspace);
  /// Ids and places of the constants, to be given to execute() with those of the tensors in memory.
  const std::vector<Id>& scalar_ids() const { return scalar_ids_; }
  const std::deque<float>& scalars() const { return scalars_; }

 private:
  enum class Kind : std::uint8_t { memory, value, scalar };
  Id describe(Kind kind, const Extents& shape, const Extents& strides, cudnnDataType_t type);
  DnnDescriptor& part(Id id) { return tensors_[static_cast<std::size_t>(id) - 1]; }
  /// An operation and what it is an operation of; cuDNN may refuse either.
  void add(DnnDescriptor kind, DnnDescriptor operation);

  std::vector<DnnDescriptor> tensors_, kinds_, operations_;
  std::vector<Id> scalar_ids_;
  std::deque<float> scalars_;
  bool refused_ = false;
};

}  // namespace ferrite::cuda
