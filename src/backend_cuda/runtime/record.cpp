// A recorded step is a CudaGraph.
#include "ferrite/backend/record.hpp"

#include "ferrite/backend/cuda_graph.hpp"

namespace ferrite {
namespace {

class GraphStep final : public RecordedStep {
 public:
  explicit GraphStep(CudaGraph graph) : graph_(std::move(graph)) {}
  void replay() override { graph_.replay(); }

 private:
  CudaGraph graph_;
};

}  // namespace

std::unique_ptr<RecordedStep> record(Cuda& backend, const std::function<void()>& step) {
  return std::make_unique<GraphStep>(CudaGraph::capture(backend, step));
}

}  // namespace ferrite
