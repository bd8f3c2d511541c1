// Cross-validation of any models on one table: every row is predicted by what was learned from other rows,
// encoders included.
#pragma once

#include "ferrite/models/pfn/metrics.hpp"
#include "ferrite/models/pfn/splits.hpp"

namespace ferrite::pfn {

/// Learns from the first table and predicts the rows of the second, as Predict does.
using FitPredict = std::function<std::vector<double>(const EncodedTable& train, const EncodedTable& test)>;

struct CrossValidation {
  /// The rows that have a target, by an encoder of all of them: for their targets and the names of classes.
  EncodedTable rows;
  std::vector<Fold> folds;
  /// Of every model: for each of `rows` the probabilities of the classes, or a number.
  std::vector<std::vector<double>> predictions;
  /// Of the encoder of all rows; then what those of the folds did not know in their test parts, each once.
  std::vector<std::string> notices;
};

/// Task and classes are decided by the whole table, everything else by each train part. A class that a train
/// part does not have gets probability 0 there. Throws what TableEncoder::fit and the folds throw, and
/// ValueError for predictions of the wrong number.
FERRITE_API CrossValidation cross_validate(const Table& table, const std::string& target,
                                           std::span<const FitPredict> models, std::int64_t folds = 5,
                                           std::uint64_t seed = 0, const EncoderConfig& config = {});

/// The mean over the folds of the score of a model's predictions.
FERRITE_API double mean_score(const CrossValidation& validation, std::size_t model,
                              const Score& score = default_score);

}  // namespace ferrite::pfn
