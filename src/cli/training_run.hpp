// What all commands that train have in common: where a run may begin, who is told how it goes, how it ends.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/progress_log.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/training_ranks.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/train/checkpoint.hpp"
#include "ferrite/train/metrics.hpp"
#include "ferrite/train/trainer.hpp"

namespace ferrite::cli {

/// Makes the folder. Throws ValueError if it has checkpoints of another run, and this one does not go on with
/// it.
inline void check_folder_of_run(const std::string& command, const std::string& out, bool resume) {
  const train::CheckpointFolder folder(out);
  std::error_code error;
  if (!resume && (folder.latest() || std::filesystem::exists(folder.best(), error)))
    throw ValueError(fmt::format(
        "[{}] {}: has checkpoints of an earlier run: give --resume to go on with it, or another --out",
        command, out));
}

/// Of a checkpoint: a run that goes on must update its weights as before.
inline std::string update_setting(double weight_decay, double clip) {
  return fmt::format("weight decay {}, gradients clipped to a norm of {}", weight_decay, clip);
}

/// A bar on terminals and lines elsewhere, unless `quiet`; and the files of metrics in the folder of the run.
class RunObservers {
 public:
  /// tokens_per_sample: 0 for samples that are not text.
  RunObservers(const std::string& command, const std::string& out, bool quiet,
               std::int64_t tokens_per_sample = 0)
      : bar_(quiet ? nullptr : stderr, Show::on_terminals, tokens_per_sample),
        log_(stderr, tokens_per_sample),
        metrics_(out, train::MetricsConfig{}
                          .with_tokens_per_sample(tokens_per_sample)
                          .with_title("ferrite " + command + ": " + out)),
        logs_(!quiet && ::isatty(::fileno(stderr)) != 1) {}
  void add_to(train::TrainerBase& trainer) {
    for (train::Observer* const observer : all()) trainer.add_observer(*observer);
  }
  /// For those who have more to tell.
  std::vector<train::Observer*> all() {
    std::vector<train::Observer*> observers{&bar_, &metrics_};
    if (logs_) observers.push_back(&log_);
    return observers;
  }

 private:
  train::ProgressBar bar_;
  ProgressLog log_;
  train::RunMetrics metrics_;
  bool logs_;
};

/// Trains to the end, or until Ctrl-C. If a file cannot be written, on a full disk, the error says what is
/// left.
template <class B>
train::Outcome fit_or_stop(train::Trainer<B>& trainer, const std::string& out) {
  const StopOnSignal stop(trainer);
  try {
    return trainer.fit();
  } catch (const IoError& error) {
    const auto newest = train::CheckpointFolder(out).latest();
    if (!newest) throw;
    throw IoError(fmt::format("{}; the newest checkpoint is {}: --resume goes on from there", error.what(),
                              newest->string()));
  }
}

/// The first rank's says how the run ended. The others' are successes: mpirun ends all ranks when one fails,
/// and the first may still have to write.
inline int exit_code(train::Outcome outcome, const TrainingRanks& ranks) {
  return outcome == train::Outcome::interrupted && ranks.is_first() ? interrupted : success;
}

/// The same, and says where the newest checkpoint is. Returns an exit code.
template <class B>
int fit(train::Trainer<B>& trainer, const TrainingRanks& ranks, const std::string& out, bool quiet) {
  const train::Outcome outcome = fit_or_stop(trainer, out);
  const int code = exit_code(outcome, ranks);
  if (quiet) return code;
  const auto newest = train::CheckpointFolder(out).latest();
  fmt::print("{}{}\n", newest ? newest->string() : out,
             outcome == train::Outcome::interrupted ? ": interrupted; --resume goes on from there" : "");
  return code;
}

}  // namespace ferrite::cli
