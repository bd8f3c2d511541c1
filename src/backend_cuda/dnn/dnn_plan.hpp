// Plans of cuDNN's graph interface: what they are made of, building them, running them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend_cuda/dnn/dnn_descriptor.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// Descriptors that refer to each other; the operation graph is the last.
using DnnParts = std::shared_ptr<const std::vector<DnnDescriptor>>;

/// The parts stay alive as long as the plan made of them.
struct DnnPlan {
  DnnParts parts;
  DnnDescriptor plan;
  std::size_t workspace;
};

cudnnDataType_t dnn_data_type(DType dtype);

/// Nothing if the engine turns out not to take the graph, or wants more memory than `most_workspace`.
std::optional<DnnPlan> build_plan(Libraries& libraries, const DnnParts& parts, const DnnDescriptor& config,
                                  std::size_t most_workspace);

/// Queues it. `ids` are the tensors' numbers in the graph, `pointers` their memory; for scalars that is host
/// memory, which is read before this returns.
void execute(Libraries& libraries, const Call& call, const DnnPlan& plan, std::span<const std::int64_t> ids,
             std::span<void* const> pointers);

}  // namespace ferrite::cuda
