// Observer: is told how a training run goes. The trainer itself prints nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/core/export.hpp"
#include "ferrite/io/progress.hpp"

namespace ferrite::train {

/// The progress of a run.
struct Progress {
  std::int64_t step = 0;  // done
  std::int64_t steps = 0;
  std::int64_t epoch = 0;
  double loss = 0;  // mean since the last report
  double lr = 0;
  double samples_per_second = 0;
  double seconds_left = 0;
  /// Norm of the last step's gradients, before clipping; 0 if the optimiser does not compute it (see
  /// Optimizer::gradient_norm), and not finite after a step that the loss scaler has left out.
  double gradient_norm = 0;
  /// By which losses are multiplied (optim::LossScaler); 0 if they are not.
  double loss_scale = 0;
  /// The most memory that the backend had in use so far.
  std::size_t memory_bytes = 0;
};

/// Metric values by name, in the order the metrics were added; "loss" comes first.
struct FERRITE_API Evaluation {
  std::vector<std::pair<std::string, double>> values;
  /// Throws ValueError listing the names there are.
  double operator[](std::string_view name) const;
};

/// Is told about a run while it goes on. Override what you want to know; the others do nothing. An IoError of
/// on_progress, on_evaluation, on_checkpoint or on_finish is told as a notice, once, and the training goes
/// on.
class FERRITE_API Observer {
 public:
  virtual ~Observer() = default;
  /// The run goes on from a checkpoint of this step. Not called for a run that begins.
  virtual void on_resume(std::int64_t /*step*/) {}
  virtual void on_progress(const Progress&) {}
  virtual void on_evaluation(std::int64_t /*step*/, const Evaluation&) {}
  virtual void on_checkpoint(std::int64_t /*step*/, const std::filesystem::path&) {}
  /// Facts that a user should know but that are not errors: a damaged checkpoint that was skipped, 16-bit
  /// weights, a skipped batch, an early stop. Earlier notices come first.
  virtual void on_notice(const std::string&) {}
  virtual void on_finish() {}
};

using ferrite::Show;

/// "50/100  loss 0.1235  lr 1.00e-03  1234 samples/s  ETA 1:15", or tokens/s if samples have tokens.
FERRITE_API std::string to_string(const Progress& progress, std::int64_t tokens_per_sample = 0);

/// One line that is rewritten in place: bar, step, loss, learning rate, samples per second, time left.
/// Evaluations and notices stay above it. Writes nothing unless the stream is a terminal or Show::always is
/// set.
class FERRITE_API ProgressBar final : public Observer {
 public:
  /// `tokens_per_sample`: if the samples are texts, the speed is in tokens.
  explicit ProgressBar(std::FILE* stream = stderr, Show show = Show::on_terminals,
                       std::int64_t tokens_per_sample = 0)
      : line_(stream, show), tokens_per_sample_(tokens_per_sample) {}
  void on_progress(const Progress& progress) override;
  void on_evaluation(std::int64_t step, const Evaluation& evaluation) override;
  void on_notice(const std::string& text) override;
  void on_finish() override { line_.keep(); }

 private:
  ProgressLine line_;
  std::int64_t tokens_per_sample_;
};

}  // namespace ferrite::train
