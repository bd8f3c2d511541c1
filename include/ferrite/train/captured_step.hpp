// CapturedStep: a whole training step, all its micro-batches and the update, recorded by the backend and run
// again with new data.
#pragma once

#include <memory>
#include <vector>

#include "ferrite/backend/record.hpp"
#include "ferrite/nn/module.hpp"
#include "ferrite/tensor/assign.hpp"
#include "ferrite/train/loading.hpp"

namespace ferrite::train {

/// One recording for the whole step: micro-batches that follow each other share the memory of their
/// activations, and the first may write the gradients that the others add to.
template <class B>
class CapturedStep {
 public:
  /// Losses [] of the batches, in their order. Also updates the parameters.
  using Body = std::function<std::vector<Tensor<B>>(const std::vector<data::Batch<B>>&)>;

  /// Records body on tensors that later batches are loaded into; nothing is trained yet. The model and the
  /// loading must outlive it, and the model keep its parts. `beside` is an earlier one, with which it shares
  /// memory. Throws what `record` and the body throw, with nothing changed.
  CapturedStep(B& backend, nn::Module<B>& model, Loading<B>& loading,
               const std::vector<data::HostBatch>& batches, const Body& body,
               const CapturedStep* beside = nullptr)
      : loading_(loading) {
    for (const data::HostBatch& batch : batches) inputs_.push_back(loading.load(backend, batch));
    collect_buffers(model);
    try {
      step_ = record(
          backend,
          [&] {
            for (const Tensor<B>& loss : body(inputs_)) losses_.push_back(loss.detach());
            for (const Buffer& buffer : buffers_) assign(buffer.fixed, *buffer.place);
          },
          beside ? beside->step_.get() : nullptr);
    } catch (...) {
      put_buffers_back();
      throw;
    }
    put_buffers_back();
  }

  /// Trains on batches of the kinds it was recorded with, as many, and does not wait for the device. The
  /// losses are copies, which stay as they are when another step that shares its memory runs.
  std::vector<Tensor<B>> run(const std::vector<data::HostBatch>& batches) {
    for (std::size_t i = 0; i < batches.size(); ++i) loading_.load_into(batches[i], inputs_[i]);
    for (const Buffer& buffer : buffers_)  // a step that was not a replay has put another in its place
      if (buffer_of(*buffer.place) != buffer_of(buffer.fixed)) assign(buffer.fixed, *buffer.place);
    put_buffers_back();
    step_->replay();
    std::vector<Tensor<B>> losses;
    for (const Tensor<B>& loss : losses_) losses.push_back(clone(loss));
    return losses;
  }

 private:
  /// Layers put a new tensor in place of a buffer (running statistics). A replay reads and writes the one
  /// that was there when it was recorded.
  struct Buffer {
    Tensor<B>* place;
    Tensor<B> fixed;
  };

  static const void* buffer_of(const Tensor<B>& tensor) {
    return detail::kernel_array(tensor.primitive()).buffer().get();
  }
  void collect_buffers(nn::Module<B>& model) {
    struct Collector final : nn::Visitor<B> {
      std::vector<Buffer>& buffers;
      explicit Collector(std::vector<Buffer>& all) : buffers(all) {}
      void on_buffer(const std::string&, Tensor<B>& t) override { buffers.push_back({&t, t}); }
    } collector(buffers_);
    model.visit(collector);
  }
  void put_buffers_back() {
    for (const Buffer& buffer : buffers_) *buffer.place = buffer.fixed;
  }

  Loading<B>& loading_;
  std::vector<data::Batch<B>> inputs_;
  std::vector<Buffer> buffers_;
  std::vector<Tensor<B>> losses_;
  std::unique_ptr<RecordedStep> step_;
};

}  // namespace ferrite::train
