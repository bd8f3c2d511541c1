#include "cli/pfn/table_scores.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/pfn/class_names.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/models/pfn/baselines.hpp"

namespace ferrite::cli::pfn {

namespace {

using namespace ferrite::pfn;

/// Larger tables are judged by as many of their rows, taken at even distances.
constexpr std::int64_t most_rows = 1000;

Table sample_of(const Table& table) {
  if (table.rows() <= most_rows) return table;
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < most_rows; ++i) rows.push_back(i * table.rows() / most_rows);
  return table.take(rows);
}

/// f(), whose errors say which table they are about.
template <class F>
auto explained(const std::string& file, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw ValueError(fmt::format("[pfn train] --tables {}: {}", file, error.what()));
  }
}

double negative_log_loss(const EncodedTable& rows, std::span<const double> predictions) {
  return -log_loss(predictions, rows.classes, rows.class_count());
}

}  // namespace

TableScores::TableScores(const std::vector<std::string>& tables, const TableConfig& reading, Task task,
                         const PredictorConfig& config, std::vector<train::Observer*> others)
    : task_(task), config_(config), others_(std::move(others)) {
  const FitPredict shares = [](const EncodedTable& train, const EncodedTable& rows) {
    const auto model = majority();
    model->fit(train);
    return model->predict(rows);
  };
  for (const std::string& text : tables) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
      throw ValueError(
          fmt::format("[pfn train] --tables {}: must be FILE:TARGET, as in iris.csv:species", text));
    const std::string file = text.substr(0, colon), target = text.substr(colon + 1);
    explained(file, [&] {
      const Learned from = learned(file, reading, target, EncoderConfig{}.with_task(task));
      tables_.push_back({file, target, sample_of(from.train)});
    });
    predictions_of(tables_.back(), shares);
  }
}

CrossValidation TableScores::predictions_of(const Named& table, const FitPredict& model) const {
  constexpr std::int64_t folds = 5;
  return explained(table.name, [&] {
    return cross_validate(table.table, table.target, std::span(&model, 1), folds, 0,
                          EncoderConfig{}.with_task(task_));
  });
}

void TableScores::also_every(Minutes interval, const train::TrainerBase& trainer, std::filesystem::path file,
                             std::function<void(const std::filesystem::path&)> write) {
  interval_ = interval;
  trainer_ = &trainer;
  file_ = std::move(file);
  write_ = std::move(write);
  scored_at_ = Clock::now();
}

void TableScores::on_progress(const train::Progress& progress) {
  if (!write_ || Clock::now() - scored_at_ < interval_) return;
  if (trainer_->is_stopping() || progress.step == progress.steps) return;  // a checkpoint follows at once
  try {
    write_(file_);
    score_tables(progress.step, file_);
  } catch (const Error& error) {
    notice(error.what());
    scored_at_ = Clock::now();  // not again at every report
  }
  std::error_code ignored;  // a file that cannot be removed only costs space
  std::filesystem::remove(file_, ignored);
}

void TableScores::on_checkpoint(std::int64_t step, const std::filesystem::path& path) {
  score_tables(step, path);
}

void TableScores::notice(const std::string& text) {
  for (train::Observer* const other : others_) other->on_notice(text);
}

void TableScores::score_tables(std::int64_t step, const std::filesystem::path& weights) {
  if (std::exchange(scored_step_, step) == step) return;  // a checkpoint may be the best, too
  const FitPredict network = fit_predict(config_.with_weights(weights.string()));
  double score = 0, loss = 0, count = 0;
  for (const Named& table : tables_) {
    try {
      const CrossValidation validation = predictions_of(table, network);
      score += mean_score(validation, 0);
      if (task_ == Task::classification) loss -= mean_score(validation, 0, negative_log_loss);
      ++count;
    } catch (const Error& error) {
      notice(error.what());
    }
  }
  scored_at_ = Clock::now();  // the time that scores take is not training
  if (count == 0) return;
  train::Evaluation evaluation;
  if (task_ == Task::classification)
    evaluation.values = {{"table_auc", score / count}, {"table_log_loss", loss / count}};
  else
    evaluation.values = {{"table_r2", score / count}};
  for (train::Observer* const other : others_) other->on_evaluation(step, evaluation);
}

}  // namespace ferrite::cli::pfn
