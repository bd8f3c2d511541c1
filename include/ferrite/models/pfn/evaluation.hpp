// How good models are on one table: each learns and predicts on the same folds, beside simple models.
#pragma once

#include "ferrite/models/pfn/predictor_config.hpp"
#include "ferrite/models/pfn/report.hpp"

namespace ferrite::pfn {

struct IntervalPrediction {
  std::vector<double> values;
  Intervals intervals;
};
/// A model that has learned from some rows.
struct FittedModel {
  Predict predict;
  /// For regression, the same numbers with intervals from the 5 % to the 95 % quantile; empty if it has none.
  std::function<IntervalPrediction(const EncodedTable&)> predict_intervals;
  /// What it left out or sampled, one sentence each.
  std::vector<std::string> notices;
};
struct Candidate {
  std::string name;
  std::function<FittedModel(const EncodedTable& train)> fit;
  /// The same with less work, which the importance of columns is measured by; empty: fit.
  std::function<FittedModel(const EncodedTable& train)> light = nullptr;
};
/// Majority, nearest neighbours and the linear model (baselines.hpp), with names that people know.
FERRITE_API std::vector<Candidate> baseline_candidates(Task task);
/// The network; light is one member of its ensemble. Weights are read by the first fit; throws as
/// fit_predict.
FERRITE_API Candidate network_candidate(const PredictorConfig& config);

struct EvaluationConfig {
  std::int64_t folds = 5;
  std::uint64_t seed = 0;  // of the folds and the permutations
  EncoderConfig encoder;
  /// Permutations of each column in every fold, for its importance to the best model; 0: none. For each, a
  /// fold predicts about four times as many rows as the table has, or fewer, by Candidate::light: about the
  /// work of a network's four members in cross-validation. So the more columns there are, the fewer rows of
  /// the test part are dealt; and if fewer than fifty (or all that the part has) were left, only the columns
  /// that tell most about the target by themselves are measured.
  std::int64_t repeats = 0;
  /// Importance is by at most this many rows of each fold.
  std::int64_t importance_rows = 500;
  /// Told what is done next, and how much of all is done, from 0 to 1.
  std::function<void(std::string_view what, double share)> progress;
};

/// A column of the table of scores.
struct Metric {
  std::string name;  // as in "log loss"
  bool higher_is_better = true;
  std::optional<double> target;  // of coverage, where the nearest is best
};

struct ModelResult {
  std::string name;
  /// Of each metric its value in every fold; empty for coverage without intervals.
  std::vector<std::vector<double>> scores;
  /// For each row; empty if the model has none.
  Intervals intervals;
  double seconds = 0;
};

struct FERRITE_API Evaluation {
  /// Folds, targets and what each model predicted for rows it had not learned from.
  CrossValidation validation;
  /// AUC, log loss and accuracy; or RMSE, MAE, R2 and, if a model has intervals, their coverage.
  std::vector<Metric> metrics;
  std::vector<ModelResult> models;
  /// Of the best model, the most important column first; a notice says if not all columns were measured.
  /// Figures are of each fold and permutation. A column that a fold's encoder dropped loses nothing there.
  std::vector<ColumnImportance> importance;
  /// Sentences about the table and the predictions.
  std::vector<std::string> notices;

  const EncodedTable& rows() const { return validation.rows; }
  /// The models with the best mean of a metric; several if they are equal.
  std::vector<std::size_t> best(std::size_t metric) const;
  /// The one with the best AUC, or R2; of equal ones the last.
  std::size_t best_model() const;
};

/// Throws what cross_validate throws, and ValueError, which says what to do, for no models, if a class has
/// fewer rows than there are folds, and if a fold of regression would have one row.
FERRITE_API Evaluation evaluate(const Table& table, const std::string& target,
                                std::span<const Candidate> models, const EvaluationConfig& config = {});

}  // namespace ferrite::pfn
