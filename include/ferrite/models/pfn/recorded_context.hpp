// RecordedContext: a context in tensors that stay, with recordings of the passes that fill and read it. A GPU
// is done with a small table sooner than the host can launch its kernels one by one.
//
//   pfn::RecordedContext<B> context(network, rows);  // reads train rows, as Network::forward_context
//   const auto scores = context.predict(x);          // as Network::predict
//   context.read(others);                            // of the same sizes, in place of the first
#pragma once

#include <array>
#include <memory>

#include "ferrite/backend/record.hpp"
#include "ferrite/models/pfn/network.hpp"

namespace ferrite::pfn {

/// Train rows on the host. # Shapes: x [N, T, C], is_category [N, C], labels [N, T]
struct TrainRows {
  HostTensor x, is_category, labels;
};

/// Whether passes are recorded. While one is, no other thread may use the GPU (see CudaGraph).
enum class Recording : bool { no, yes };

/// What comes first of a size is computed op by op, as kernels are chosen then; from the second time on it is
/// a recording. On a backend that cannot record, and for large tables, which keep a GPU busy anyway, nothing
/// is recorded. The network must outlive it and keep its weights. One thread at a time.
template <class B>
class RecordedContext {
 public:
  /// Cells that go through the network in one recording, labels included.
  static constexpr std::int64_t most_cells = 1 << 15;

  /// Throws what Network::forward_context throws.
  RecordedContext(Network<B>& network, const TrainRows& rows, Recording recording = Recording::yes)
      : network_(network), backend_(network.label_unknown.backend()), recording_(recording) {
    std::array<Tensor<B>, 3> inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = from_host(backend_, *parts(rows)[i]);
    context_ = network_.forward_context(inputs[0], inputs[1], inputs[2]);
    if (records(rows.x.shape())) inputs_ = inputs;
  }
  /// One that was read elsewhere.
  RecordedContext(Network<B>& network, Context<B> context, Recording recording = Recording::yes)
      : network_(network),
        backend_(network.label_unknown.backend()),
        recording_(recording),
        context_(std::move(context)) {}
  RecordedContext(const RecordedContext&) = delete;
  RecordedContext& operator=(const RecordedContext&) = delete;

  /// What copies of it share is written to by `read`.
  const Context<B>& context() const { return context_; }

  /// Whether `read` takes these.
  bool can_read(const TrainRows& rows) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (!inputs_[i].defined() || inputs_[i].shape() != parts(rows)[i]->shape() ||
          inputs_[i].dtype() != parts(rows)[i]->dtype())
        return false;
    return true;
  }
  /// Forgets the rows that it has read, also if it throws. ShapeError unless it can_read the new ones.
  void read(const TrainRows& rows) {
    if (!can_read(rows))
      throw ShapeError("[RecordedContext] rows " + to_string(rows.x.shape()) + ": it " +
                       (inputs_[0].defined() ? "reads those of the dtypes and shapes of the first, " +
                                                   to_string(inputs_[0].shape())
                                             : "does not record; make another"));
    for (std::size_t i = 0; i < inputs_.size(); ++i) assign(inputs_[i], *parts(rows)[i]);
    if (reading_) return reading_->replay();
    Context<B> next;
    auto reading =
        record(backend_, [&] { next = network_.forward_context(inputs_[0], inputs_[1], inputs_[2]); });
    reading->replay();
    predicting_ = nullptr;  // it reads the tensors that the context has had so far
    context_ = std::move(next);
    reading_ = std::move(reading);
  }

  /// The next call may overwrite the scores.
  /// # Shapes: x [N, Q, C] -> as Network::predict
  Tensor<B> predict(const HostTensor& x) {
    if (!records(x.shape())) return network_.predict(context_, from_host(backend_, x));
    if (!asked_.defined() || asked_.shape() != x.shape() || asked_.dtype() != x.dtype()) {
      predicting_ = nullptr;
      asked_ = from_host(backend_, x);
      return network_.predict(context_, asked_);
    }
    assign(asked_, x);
    if (!predicting_) predicting_ = record(backend_, [&] { scores_ = network_.predict(context_, asked_); });
    predicting_->replay();
    return scores_;
  }

 private:
  static std::array<const HostTensor*, 3> parts(const TrainRows& rows) {
    return {&rows.x, &rows.is_category, &rows.labels};
  }
  bool records(const Shape& x) const {
    return recording_ == Recording::yes && x.rank() == 3 && x[0] * x[1] * (x[2] + 1) <= most_cells &&
           can_record(backend_);
  }

  Network<B>& network_;
  B backend_;
  Recording recording_;
  std::array<Tensor<B>, 3> inputs_;  // of the recording that fills the context; none if it does not record
  Context<B> context_;
  std::unique_ptr<RecordedStep> reading_;
  Tensor<B> asked_, scores_;  // of the recording that reads the context
  std::unique_ptr<RecordedStep> predicting_;
};

}  // namespace ferrite::pfn
