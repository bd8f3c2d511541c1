// How good predictions are. Probabilities are [rows, classes], f64; classes are places from 0. The numbers
// are those of scikit-learn. Each function throws ValueError for sizes that do not fit, for no rows, for
// classes outside the range and for NaN.
#pragma once

#include <functional>

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::pfn {

/// The area under the ROC curve: how often a positive row has the higher score, ties counting half.
/// ValueError unless there are rows of both kinds.
FERRITE_API double binary_auc(std::span<const double> scores, std::span<const std::uint8_t> positive);
/// For two classes, binary_auc of the second; for more, the mean of every class against the rest. Classes
/// that no row or every row has are left out of the mean; ValueError if none is left.
FERRITE_API double auc(std::span<const double> probabilities, std::span<const std::int32_t> classes,
                       std::int64_t class_count);
/// The mean of -log p of the true classes, p being kept above 2^-52.
FERRITE_API double log_loss(std::span<const double> probabilities, std::span<const std::int32_t> classes,
                            std::int64_t class_count);
/// The share of rows whose class has the largest probability, the first of equal ones.
FERRITE_API double accuracy(std::span<const double> probabilities, std::span<const std::int32_t> classes,
                            std::int64_t class_count);
/// The place of the largest of each row.
FERRITE_API std::vector<std::int32_t> most_likely(std::span<const double> probabilities,
                                                  std::int64_t class_count);

FERRITE_API double rmse(std::span<const double> predictions, std::span<const double> targets);
/// The mean of |prediction - target|.
FERRITE_API double mae(std::span<const double> predictions, std::span<const double> targets);
/// 1 - (sum of squared errors) / (sum of squared deviations from the mean); for constant targets 1 if all are
/// met, else 0.
FERRITE_API double r2(std::span<const double> predictions, std::span<const double> targets);
/// The mean loss of predictions of the quantile `level`, which lies in [0, 1].
FERRITE_API double pinball(std::span<const double> predictions, std::span<const double> targets,
                           double level);

/// A point of the ROC curve: the rows with scores of at least `threshold` are taken as positive.
struct RocPoint {
  double false_rate, true_rate, threshold;
};
/// From (0, 0), with an infinite threshold, and the highest score to (1, 1), without others in the middle of
/// a straight line. ValueError unless there are rows of both kinds.
FERRITE_API std::vector<RocPoint> roc(std::span<const double> scores, std::span<const std::uint8_t> positive);

/// Rows whose predicted probabilities lie in one of the equal parts of [0, 1].
struct CalibrationBin {
  double predicted = 0;  // the mean probability
  double observed = 0;   // the share of positive rows
  std::int64_t rows = 0;
};
/// The bins that have rows. ValueError for probabilities outside [0, 1].
FERRITE_API std::vector<CalibrationBin> calibration(std::span<const double> probabilities,
                                                    std::span<const std::uint8_t> positive,
                                                    std::int64_t bins = 10);
/// The mean of |predicted - observed| over the rows.
FERRITE_API double calibration_error(std::span<const CalibrationBin> bins);

/// 1 where the class is `which`, else 0.
FERRITE_API std::vector<std::uint8_t> is_class(std::span<const std::int32_t> classes, std::int32_t which);

/// Probabilities [rows, classes], or a number per row for regression.
using Predict = std::function<std::vector<double>(const EncodedTable&)>;
/// Of predictions for rows with targets; higher is better.
using Score = std::function<double(const EncodedTable&, std::span<const double>)>;
/// The AUC, or for regression R2.
FERRITE_API double default_score(const EncodedTable& rows, std::span<const double> predictions);

struct ColumnImportance {
  std::string column;
  double mean = 0, deviation = 0;  // of the losses
  std::vector<double> losses;      // of score, in each repeat
};
/// How much of the score is lost if the cells of a column are dealt to other rows, for every column of the
/// table, or for those that are named. Features that came from one column are dealt together. All rows are
/// predicted once, and then once for each column and repeat. Depends on the seed alone.
FERRITE_API std::vector<ColumnImportance> permutation_importance(
    const EncodedTable& rows, const Predict& predict, const Score& score = default_score,
    std::int64_t repeats = 5, std::uint64_t seed = 0, const std::vector<std::string>& columns = {});

}  // namespace ferrite::pfn
