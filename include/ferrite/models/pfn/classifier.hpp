// Classifier: predicts the classes of a table's rows from other rows of it, by a prior-fitted network.
//
//   pfn::Classifier model(pfn::PredictorConfig{}.with_weights("classes.safetensors"));
//   model.fit(pfn::read_table("train.csv"), "species");
//   const std::vector<double> p = model.predict_proba(pfn::read_table("test.csv"));  // [rows, classes]
#pragma once

#include "ferrite/models/pfn/predictor.hpp"

namespace ferrite::pfn {

/// Reading the train rows is all the fitting there is; what the network keeps of them predicts any rows.
/// Probabilities are the mean over the members. More classes than the network tells apart are predicted by
/// codes (ClassCodes), of which each member has its own.
class FERRITE_API Classifier : public Predictor {
 public:
  /// Throws as PredictorConfig::check. Weights are read by fit.
  explicit Classifier(PredictorConfig config = {});

  /// Throws what TableEncoder::fit throws about the table; ValueError for weights of another task, if there
  /// are no default ones, and if context_bytes leave room for too few rows; what AnyBackend and pfn::load
  /// throw. If it throws, what was fitted before stays.
  Classifier& fit(const Table& train, const std::string& target) &;
  Classifier fit(const Table& train, const std::string& target) &&;
  /// By an encoder that was fitted on the table. ValueError if that is one of regression.
  Classifier& fit(const Table& train, const TableEncoder& encoder) &;

  /// Names, in the order of the probabilities. ValueError before fit.
  const std::vector<std::string>& classes() const;
  /// The probabilities of the classes, in the order of the rows; the sum of each row is 1. Columns are found
  /// by name, as TableEncoder::transform has it, and the target is not looked at. ValueError before fit.
  /// # Shapes: [rows, classes]
  std::vector<double> predict_proba(const Table& rows);
  /// The same of rows that encoder() has encoded.
  std::vector<double> predict_proba(const EncodedTable& rows);
  /// The name of the most likely class of each row.
  std::vector<std::string> predict(const Table& rows);

  /// What `save` wrote, with the weights that it was fitted with; the config says which these are and where
  /// to run, and what was fitted says the rest. On the same backend, with the same query_rows, it predicts
  /// the same bits. ValueError for other weights or a fitted Regressor; IoError; ParseError for a damaged
  /// file.
  static Classifier load(const std::filesystem::path& path, const PredictorConfig& config = {});
};

}  // namespace ferrite::pfn
