// Real tables beside a training on synthetic ones: how well the network of each checkpoint predicts them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ferrite/models/pfn/predictor_config.hpp"
#include "ferrite/train/observer.hpp"

namespace ferrite::cli::pfn {

/// Cross-validates the averaged weights of every checkpoint on tables, and tells the means: table_auc and
/// table_log_loss, or table_r2 for regression. A table that fails is told in a notice; the training goes on.
class TableScores final : public train::Observer {
 public:
  /// `tables` are "FILE:TARGET". The other observers are told the scores. Throws ValueError for another form,
  /// and what read_table and cross_validate throw: every table is tried before a long run begins.
  TableScores(const std::vector<std::string>& tables, ferrite::pfn::Task task,
              const ferrite::pfn::PredictorConfig& config, std::vector<train::Observer*> others);

  void on_checkpoint(std::int64_t step, const std::filesystem::path& path) override;

 private:
  struct Named {
    std::string name, target;
    ferrite::pfn::Table table;
  };
  ferrite::pfn::CrossValidation predictions_of(const Named& table,
                                               const ferrite::pfn::FitPredict& model) const;

  std::vector<Named> tables_;
  ferrite::pfn::Task task_;
  ferrite::pfn::PredictorConfig config_;
  std::vector<train::Observer*> others_;
  std::int64_t scored_step_ = -1;
};

}  // namespace ferrite::cli::pfn
