#include "ferrite/models/pfn/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "ferrite/core/error.hpp"
#include "ferrite/models/pfn/baselines.hpp"
#include "models/pfn/fold_importance.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::pfn {

namespace {

using quantile_tokenizer::printable;

constexpr double wanted_coverage = 0.9;

Candidate candidate(std::string name, std::unique_ptr<Baseline> (*make)()) {
  return {std::move(name), [make](const EncodedTable& train) {
            const std::shared_ptr<Baseline> model = make();
            model->fit(train);
            return FittedModel{[model](const EncodedTable& rows) { return model->predict(rows); }, {}, {}};
          }};
}

void check_rows(const EncodedTable& rows, const std::string& target, std::int64_t folds) {
  if (rows.task == Task::regression) {
    if (rows.rows < 2 * folds)
      throw ValueError(
          fmt::format("[pfn.evaluate] {} rows, {} folds: each fold needs two rows; {}", rows.rows, folds,
                      rows.rows < 4 ? "add rows" : fmt::format("ask for at most {} folds", rows.rows / 2)));
    return;
  }
  std::vector<std::int64_t> counts(rows.class_names.size());
  for (const std::int32_t c : rows.classes) ++counts[static_cast<std::size_t>(c)];
  const auto rarest = std::min_element(counts.begin(), counts.end());
  if (*rarest >= folds) return;
  const std::string& name = rows.class_names[static_cast<std::size_t>(rarest - counts.begin())];
  throw ValueError(fmt::format(
      "[pfn.evaluate] class '{}' of target '{}' has {} row{}: {} folds need one in each; {}leave out its "
      "rows, or join it with another class",
      printable(name), printable(target), *rarest, *rarest == 1 ? "" : "s", folds,
      *rarest < 2 ? "" : fmt::format("ask for at most {} folds, ", *rarest)));
}

/// What the models say in one run through the folds, beside their predictions.
class Recorder {
 public:
  Recorder(std::span<const Candidate> models, const EvaluationConfig& config, double stages)
      : models_(models), config_(config), stages_(stages), results_(models.size()) {}

  std::vector<FitPredict> fit_predicts() {
    std::vector<FitPredict> all;
    for (std::size_t m = 0; m < models_.size(); ++m)
      all.push_back(
          [this, m](const EncodedTable& train, const EncodedTable& test) { return run(m, train, test); });
    return all;
  }
  /// Puts what was said fold by fold in the order of the rows.
  std::vector<ModelResult> results(const CrossValidation& validation) {
    for (ModelResult& result : results_) {
      const Intervals said = std::move(result.intervals);
      result.intervals = {std::vector<double>(said.low.size()), std::vector<double>(said.high.size())};
      std::size_t i = 0;
      for (const Fold& fold : validation.folds)
        for (const std::int64_t row : fold.test) {
          if (i == said.low.size()) break;  // it has none
          result.intervals.low[static_cast<std::size_t>(row)] = said.low[i];
          result.intervals.high[static_cast<std::size_t>(row)] = said.high[i++];
        }
    }
    return std::move(results_);
  }
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  std::vector<double> run(std::size_t m, const EncodedTable& train, const EncodedTable& test) {
    ModelResult& result = results_[m];
    result.name = models_[m].name;
    const std::int64_t fold = done_ / static_cast<std::int64_t>(models_.size());
    if (config_.progress)
      config_.progress(fmt::format("fold {} of {}, {}", fold + 1, config_.folds, result.name),
                       static_cast<double>(done_) / stages_);
    const auto start = std::chrono::steady_clock::now();
    const FittedModel model = models_[m].fit(train);
    std::vector<double> predicted;
    if (test.task == Task::regression && model.predict_intervals) {
      IntervalPrediction said = model.predict_intervals(test);
      coverage(said.intervals, test.targets);  // checks their number
      auto& [low, high] = result.intervals;
      low.insert(low.end(), said.intervals.low.begin(), said.intervals.low.end());
      high.insert(high.end(), said.intervals.high.begin(), said.intervals.high.end());
      predicted = std::move(said.values);
    } else {
      predicted = model.predict(test);
    }
    if (fold == 0)  // those of other folds differ by a row or two
      for (const std::string& notice : model.notices) notices_.push_back(result.name + ": " + notice);
    result.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++done_;
    return predicted;
  }

  std::span<const Candidate> models_;
  const EvaluationConfig& config_;
  double stages_;  // of all work, of which each fit is one
  std::int64_t done_ = 0;
  std::vector<ModelResult> results_;
  std::vector<std::string> notices_;
};

/// The predictions and targets of one fold.
struct Part {
  EncodedTable truth;
  std::vector<double> predictions;
  Intervals intervals;
};

Part part_of(const Evaluation& all, std::size_t model, const Fold& fold) {
  const std::vector<double>& predictions = all.validation.predictions[model];
  const std::size_t width = predictions.size() / static_cast<std::size_t>(all.rows().rows);
  const Intervals& intervals = all.models[model].intervals;
  Part part{all.rows().take(fold.test), {}, {}};
  for (const std::int64_t row : fold.test) {
    const auto r = static_cast<std::size_t>(row);
    for (std::size_t c = 0; c < width; ++c) part.predictions.push_back(predictions[r * width + c]);
    if (intervals.low.empty()) continue;
    part.intervals.low.push_back(intervals.low[r]);
    part.intervals.high.push_back(intervals.high[r]);
  }
  return part;
}

std::vector<double> scores_of(const Part& part) {
  const EncodedTable& truth = part.truth;
  if (truth.task == Task::classification)
    return {auc(part.predictions, truth.classes, truth.class_count()),
            log_loss(part.predictions, truth.classes, truth.class_count()),
            accuracy(part.predictions, truth.classes, truth.class_count())};
  std::vector<double> scores{rmse(part.predictions, truth.targets), mae(part.predictions, truth.targets),
                             r2(part.predictions, truth.targets)};
  if (!part.intervals.low.empty()) scores.push_back(coverage(part.intervals, truth.targets));
  return scores;
}

/// Rows whose class got no probability decide over the log loss; people should know.
void tell_impossible(Evaluation& all) {
  const EncodedTable& rows = all.rows();
  for (std::size_t m = 0; m < all.models.size() && rows.task == Task::classification; ++m) {
    std::int64_t impossible = 0;
    for (std::size_t r = 0; r < rows.classes.size(); ++r)
      impossible +=
          all.validation
              .predictions[m][r * rows.class_names.size() + static_cast<std::size_t>(rows.classes[r])] <
          std::numeric_limits<double>::epsilon();
    if (impossible > 0)
      all.notices.push_back(fmt::format(
          "{}: {} of {} rows have a class to which it gave probability 0; each adds 36 to the sum that log "
          "loss is the mean of",
          all.models[m].name, impossible, rows.rows));
  }
}

}  // namespace

std::vector<Candidate> baseline_candidates(Task task) {
  return {candidate(task == Task::classification ? "majority" : "mean", [] { return majority(); }),
          candidate("nearest neighbours", [] { return nearest_neighbours(); }),
          candidate(task == Task::classification ? "logistic regression" : "ridge regression",
                    [] { return linear_model(); })};
}

std::vector<std::size_t> Evaluation::best(std::size_t metric) const {
  const Metric& wanted = metrics.at(metric);
  std::vector<std::pair<double, std::size_t>> values;  // of models that have the metric
  double highest = -std::numeric_limits<double>::infinity();
  for (std::size_t m = 0; m < models.size(); ++m) {
    if (models[m].scores[metric].empty()) continue;
    const double mean = spread_of(models[m].scores[metric]).mean;
    values.emplace_back(wanted.target             ? -std::abs(mean - *wanted.target)
                        : wanted.higher_is_better ? mean
                                                  : -mean,
                        m);
    highest = std::max(highest, values.back().first);
  }
  std::vector<std::size_t> found;
  for (const auto& [value, m] : values)
    if (highest - value <= 1e-12 * std::abs(highest)) found.push_back(m);  // sums are rounded
  return found;
}

std::size_t Evaluation::best_model() const {
  return best(rows().task == Task::classification ? 0 : 2).back();
}

Evaluation evaluate(const Table& table, const std::string& target, std::span<const Candidate> models,
                    const EvaluationConfig& config) {
  if (models.empty()) throw ValueError("[pfn.evaluate] no models: give at least one");
  const TableEncoder encoder = TableEncoder::fit(table, target, config.encoder);
  if (config.folds >= 2) check_rows(encoder.transform_train(table), target, config.folds);
  const auto fits = config.folds * std::ssize(models);
  const double scoring = config.repeats > 0 ? 0.5 : 1;  // its share of the work: importance takes as long
  Recorder recorder(models, config, static_cast<double>(fits) / scoring);
  Evaluation all;
  const std::vector<FitPredict> runs = recorder.fit_predicts();
  all.validation = cross_validate(table, target, runs, config.folds, config.seed, config.encoder);
  all.models = recorder.results(all.validation);
  all.notices = all.validation.notices;
  all.notices.insert(all.notices.end(), recorder.notices().begin(), recorder.notices().end());
  if (all.rows().task == Task::classification)
    all.metrics = {{"AUC", true, {}}, {"log loss", false, {}}, {"accuracy", true, {}}};
  else
    all.metrics = {{"RMSE", false, {}}, {"MAE", false, {}}, {"R2", true, {}}};
  if (std::any_of(all.models.begin(), all.models.end(),
                  [](const ModelResult& model) { return !model.intervals.low.empty(); }))
    all.metrics.push_back({"coverage", true, wanted_coverage});
  for (std::size_t m = 0; m < all.models.size(); ++m) {
    all.models[m].scores.resize(all.metrics.size());
    for (const Fold& fold : all.validation.folds) {
      const std::vector<double> scores = scores_of(part_of(all, m, fold));
      for (std::size_t i = 0; i < scores.size(); ++i) all.models[m].scores[i].push_back(scores[i]);
    }
  }
  tell_impossible(all);
  if (config.repeats > 0) {
    const Candidate& best = models[all.best_model()];
    detail::FoldImportance found = detail::fold_importance(
        table, target, all.rows(), best.light ? best.light : best.fit, config, [&](double share) {
          if (config.progress)
            config.progress("importance of columns to " + best.name, scoring + (1 - scoring) * share);
        });
    all.importance = std::move(found.columns);
    if (!found.notice.empty()) all.notices.push_back(std::move(found.notice));
  }
  if (config.progress) config.progress("evaluated", 1);
  return all;
}

}  // namespace ferrite::pfn
