// A training step recorded once and replayed with one call: the host pays only once for launching hundreds of
// kernels.
//
//   Tensor<Autodiff<Cuda>> loss;
//   auto graph = CudaGraph::capture(cuda, [&] {
//     loss = softmax_cross_entropy(net.forward(x), y);
//     optimizer.step(loss.backward());
//   });
//   for (...) { assign(x, batch.x); assign(y, batch.y); graph.replay(); losses.push(loss); }
#pragma once

#include <concepts>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "ferrite/backend/cuda.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

/// Tensors that step() reads must keep their buffers as long as the graph lives; new data is copied into
/// them. Every replay fills the tensors that step() makes and that outlive it, always in the same place.
/// Every replay draws the random numbers that calling step() again would have drawn, whatever else has drawn
/// from its generators meanwhile, and advances them; they must not move in memory. Actions that a replay
/// would not repeat throw a BackendError that says why: copies from and to the host (item(), printing a
/// tensor, from_vector) and waiting for the GPU. Run the step once before capturing, so that cuBLASLt and
/// cuDNN choose their kernels. While a GPU captures, no other thread may use it.
/// A graph that is captured `beside` another of the same GPU takes its memory from the same arena, since they
/// never run at the same time. What a replay has filled is valid until another of these graphs is replayed.
class FERRITE_API CudaGraph {
 public:
  template <std::invocable F>
  static CudaGraph capture(Cuda& cuda, F&& step, const CudaGraph* beside = nullptr) {
    CudaGraph graph(begin(cuda, beside));
    try {
      step();
    } catch (...) {
      abandon(*graph.state_);
      throw;
    }
    end(*graph.state_);
    return graph;
  }

  /// Returns at once; the GPU runs it after the work it was given before.
  void replay();

  /// Kernels and copies in the graph.
  std::size_t nodes() const;
  /// Memory that the graph holds, with all that were captured beside it, in bytes.
  std::size_t memory() const;

 private:
  struct State;
  explicit CudaGraph(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static std::shared_ptr<State> begin(Cuda& cuda, const CudaGraph* beside);
  static void end(State& state);
  static void abandon(State& state) noexcept;

  std::shared_ptr<State> state_;
};

/// Reads numbers from the GPU without waiting for it: the loss of a step is read while the next steps already
/// run.
class FERRITE_API LateReader {
 public:
  explicit LateReader(Cuda& cuda);
  ~LateReader();
  LateReader(const LateReader&) = delete;
  LateReader& operator=(const LateReader&) = delete;

  /// Notes the single element (f32) that the array holds after the work given so far. BackendError inside a
  /// capture.
  void push(const Array& array);
  template <class B>
  void push(const Tensor<B>& tensor) {
    push(detail::array_in_memory(tensor.backend(), detail::kernel_array(tensor.primitive())));
  }
  std::size_t pending() const { return pending_.size(); }
  /// The oldest note; waits for it if necessary. ValueError if there is none.
  float pop();

 private:
  struct Note {
    float* value;  // pinned
    void* event;
  };
  Note make_note();

  Cuda& cuda_;
  std::deque<Note> pending_;
  std::vector<Note> free_;
};

}  // namespace ferrite
