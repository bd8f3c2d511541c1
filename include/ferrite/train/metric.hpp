// Metrics: measured by an evaluation, batch by batch.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/data/dataset.hpp"
#include "ferrite/nn/module.hpp"

namespace ferrite::train {

/// The prediction of a model for a batch: a loss [] averaged over the rows, and the output it was computed
/// from.
template <class B>
struct Prediction {
  Tensor<B> loss;
  Tensor<B> output;
};

/// How a model is applied to a batch; the trainer calls only this.
template <class B>
using StepFunction = std::function<Prediction<B>(const data::Batch<B>&)>;

/// The step function of a model and a loss: loss(model(x), y). The model must outlive it.
template <class B, class Loss>
StepFunction<B> supervised(nn::Layer<B>& model, Loss loss) {
  return [&model, loss](const data::Batch<B>& batch) {
    const Tensor<B> output = model.forward(batch.x);
    return Prediction<B>{loss(output, batch.y), output};
  };
}

/// The step function of a model with a loss of its own, such as nn::Gpt: model.loss(x, y), which is the
/// output too. The model must outlive it.
template <template <class> class Model, class B>
StepFunction<B> language_model(Model<B>& model) {
  return [&model](const data::Batch<B>& batch) {
    const Tensor<B> loss = model.loss(batch.x, batch.y);
    return Prediction<B>{loss, loss};
  };
}

/// A quantity measured over many batches: reset, then add for each, then value. Its name appears in reports
/// and is used in with_best.
template <class B>
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string name() const = 0;
  virtual void add(const Prediction<B>& prediction, const data::Batch<B>& batch) = 0;
  virtual double value() const = 0;
  virtual void reset() = 0;
};

/// Mean of the loss over all rows.
template <class B>
class MeanLoss final : public Metric<B> {
 public:
  std::string name() const override { return "loss"; }
  void add(const Prediction<B>& p, const data::Batch<B>& batch) override {
    sum_ += p.loss.template item<double>() * static_cast<double>(batch.size());
    rows_ += batch.size();
  }
  double value() const override { return rows_ > 0 ? sum_ / static_cast<double>(rows_) : 0; }
  void reset() override { *this = {}; }

 private:
  double sum_ = 0;
  std::int64_t rows_ = 0;
};

/// Share of the rows whose target has the largest output. # Shapes: output [..., classes], y integer [...]
template <class B>
class Accuracy final : public Metric<B> {
 public:
  std::string name() const override { return "accuracy"; }
  /// Throws ShapeError and DTypeError for other shapes, and for fewer than two classes.
  void add(const Prediction<B>& p, const data::Batch<B>& batch) override {
    const Shape &scores = p.output.shape(), &targets = batch.y.shape();
    Shape expected = scores;
    if (scores.rank() > 0) expected.erase(scores.rank() - 1);
    if (scores.rank() == 0 || scores[scores.rank() - 1] < 2 || targets != expected)
      throw ShapeError(
          "[Accuracy] output " + to_string(scores) + ", targets " + to_string(targets) +
          ": needs a score for each of two or more classes, and as many targets as rows of scores");
    if (!is_integer(batch.y.dtype()))
      throw DTypeError("[Accuracy] targets of " + std::string(to_string(batch.y.dtype())) +
                       ": needs integers, the numbers of the classes");
    hits_ += sum(argmax(p.output.detach(), -1) == batch.y).template item<std::int64_t>();
    targets_ += batch.y.numel();
  }
  double value() const override {
    return targets_ > 0 ? static_cast<double>(hits_) / static_cast<double>(targets_) : 0;
  }
  void reset() override { *this = {}; }

 private:
  std::int64_t hits_ = 0;
  std::int64_t targets_ = 0;
};

}  // namespace ferrite::train
