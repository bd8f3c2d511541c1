// Real tables beside a training on synthetic ones: how well the network predicts them as it learns.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ferrite/models/pfn/predictor_config.hpp"
#include "ferrite/train/trainer_base.hpp"

namespace ferrite::cli::pfn {

/// Cross-validates the averaged weights of every checkpoint on tables, and tells the means: table_auc and
/// table_log_loss, or table_r2 for regression. A table that fails is told in a notice; the training goes on.
/// The run is the same with and without it. With several ranks one has it, alone, and the others wait at
/// their next step.
class TableScores final : public train::Observer {
 public:
  using Minutes = std::chrono::duration<double, std::ratio<60>>;

  /// `tables` are "FILE:TARGET", read as `reading` says. The other observers are told the scores. Throws
  /// ValueError for another form, and what read_table and cross_validate throw: every table is tried before a
  /// long run begins.
  TableScores(const std::vector<std::string>& tables, const ferrite::pfn::TableConfig& reading,
              ferrite::pfn::Task task, const ferrite::pfn::PredictorConfig& config,
              std::vector<train::Observer*> others);

  /// Tables are also scored at a report if so much time has passed since they were scored last, unless the
  /// trainer is about to stop: whoever asked for that may not wait. `write` writes the weights of the moment
  /// to `file`, which is removed again.
  void also_every(Minutes interval, const train::TrainerBase& trainer, std::filesystem::path file,
                  std::function<void(const std::filesystem::path&)> write);

  void on_progress(const train::Progress& progress) override;
  void on_checkpoint(std::int64_t step, const std::filesystem::path& path) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Named {
    std::string name, target;
    ferrite::pfn::Table table;
  };
  ferrite::pfn::CrossValidation predictions_of(const Named& table,
                                               const ferrite::pfn::FitPredict& model) const;
  void score_tables(std::int64_t step, const std::filesystem::path& weights);
  void notice(const std::string& text);

  std::vector<Named> tables_;
  ferrite::pfn::Task task_;
  ferrite::pfn::PredictorConfig config_;
  std::vector<train::Observer*> others_;
  std::int64_t scored_step_ = -1;
  Clock::time_point scored_at_;
  Minutes interval_{};
  const train::TrainerBase* trainer_ = nullptr;
  std::filesystem::path file_;
  std::function<void(const std::filesystem::path&)> write_;  // none: tables are scored at checkpoints alone
};

}  // namespace ferrite::cli::pfn
