// Simple models to compare with: what is always said, the nearest rows, a linear model. All are deterministic
// and take tables as a TableEncoder gives them, missing cells and categories included.
#pragma once

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::pfn {

/// One thread at a time.
class FERRITE_API Baseline {
 public:
  virtual ~Baseline() = default;
  virtual std::string_view name() const = 0;

  /// ValueError unless there are rows and every one has a target.
  void fit(const EncodedTable& train);
  /// Probabilities [rows, classes] or, for regression, a number per row. ValueError before fit, and for a
  /// table with other features.
  std::vector<double> predict(const EncodedTable& rows) const;

 private:
  virtual void learn(const EncodedTable& train) = 0;
  virtual std::vector<double> answer(const EncodedTable& rows) const = 0;

  std::vector<Feature> features_;
  bool fitted_ = false;
};

/// The shares of the classes, or the mean.
FERRITE_API std::unique_ptr<Baseline> majority();

struct NeighbourConfig {
  std::int64_t neighbours = 5;
};
/// The shares of the classes, or the mean, of the nearest train rows; of equally near ones, the first. The
/// squared distance is the sum over numbers, scaled to variance 1, of the squared difference, and over
/// categories of 1 if they differ; a missing cell is at 1 from all that are not. ValueError if there are no
/// neighbours.
FERRITE_API std::unique_ptr<Baseline> nearest_neighbours(const NeighbourConfig& config = {});

struct LinearConfig {
  /// The loss is summed over the rows, and penalty / 2 times the sum of squared weights is added: 1 / C of
  /// scikit-learn's LogisticRegression, alpha of its Ridge.
  double penalty = 1;
  std::int64_t most_steps = 1000;
};
/// Logistic regression (multinomial for more than two classes) or ridge regression, on numbers scaled to
/// variance 1, where missing ones are the mean and have a flag, and on one weight per category. ValueError
/// for a penalty that is not positive or no steps.
FERRITE_API std::unique_ptr<Baseline> linear_model(const LinearConfig& config = {});

}  // namespace ferrite::pfn
