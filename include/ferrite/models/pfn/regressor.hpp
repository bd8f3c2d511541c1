// Regressor: predicts numbers of a table's rows from other rows of it, by a prior-fitted network.
//
//   pfn::Regressor model;
//   const pfn::LabelDistributions y = model.fit(train, "price").predict(test);
//   y.mean(), y.median(), y.quantile(0.95);  // of each row
#pragma once

#include "ferrite/models/pfn/predictor.hpp"

namespace ferrite::pfn {

/// Of each row, the distribution of its label: the mixture of what the members say, in the units of the
/// labels. A mixture, since members that disagree are unsure together; a mean of their quantiles would be as
/// sure as they are alone.
class FERRITE_API LabelDistributions {
 public:
  /// What members say who see labels in the same scale: a label is centre + spread * (a place in the bins).
  struct Part {
    double centre = 0, spread = 1, weight = 1;  // weights add up to 1
    std::vector<double> probabilities;          // [rows, bins]
  };
  /// Of bins as LabelBins has them. ValueError without parts, or for one of another size.
  LabelDistributions(std::int64_t rows, std::int64_t bins, std::vector<Part> parts);

  std::int64_t rows() const { return rows_; }
  /// Each gives a number for each row.
  std::vector<double> mean() const;
  std::vector<double> median() const { return quantile(0.5); }
  /// The number that a label lies below with probability `level`. ValueError unless 0 < level < 1.
  std::vector<double> quantile(double level) const;

 private:
  std::int64_t rows_, bins_;
  std::vector<Part> parts_;
};

/// Reading the train rows is all the fitting there is; what the network keeps of them predicts any rows.
class FERRITE_API Regressor : public Predictor {
 public:
  /// Throws as PredictorConfig::check. Weights are read by fit.
  explicit Regressor(PredictorConfig config = {});

  /// Throws as Classifier::fit.
  Regressor& fit(const Table& train, const std::string& target) &;
  Regressor fit(const Table& train, const std::string& target) &&;
  /// By an encoder that was fitted on the table. ValueError if that is one of classification.
  Regressor& fit(const Table& train, const TableEncoder& encoder) &;

  /// In the order of the rows. Columns are found by name, as TableEncoder::transform has it, and the target
  /// is not looked at. ValueError before fit.
  LabelDistributions predict(const Table& rows);
  /// The same of rows that encoder() has encoded.
  LabelDistributions predict(const EncodedTable& rows);

  /// As Classifier::load.
  static Regressor load(const std::filesystem::path& path, const PredictorConfig& config = {});
};

}  // namespace ferrite::pfn
