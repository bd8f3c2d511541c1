// A recorded step is a CudaGraph.
#include "ferrite/backend/record.hpp"

#include "ferrite/backend/cuda_graph.hpp"

namespace ferrite {
namespace {

class GraphStep final : public RecordedStep {
 public:
  explicit GraphStep(CudaGraph graph) : graph_(std::move(graph)) {}
  void replay() override { graph_.replay(); }
  const CudaGraph& graph() const { return graph_; }

 private:
  CudaGraph graph_;
};

}  // namespace

std::unique_ptr<RecordedStep> record(Cuda& backend, const std::function<void()>& step,
                                     const RecordedStep* beside) {
  const auto* const other = dynamic_cast<const GraphStep*>(beside);
  return std::make_unique<GraphStep>(CudaGraph::capture(backend, step, other ? &other->graph() : nullptr));
}

}  // namespace ferrite
