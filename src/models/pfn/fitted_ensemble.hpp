// What a prior-fitted network keeps of a train table: a context for each member and coding. It predicts
// encoded rows.
#pragma once

#include "ferrite/models/pfn/class_codes.hpp"
#include "ferrite/models/pfn/ensemble.hpp"
#include "ferrite/models/pfn/regressor.hpp"
#include "models/pfn/loaded_network.hpp"

namespace ferrite::pfn::detail {

/// Labels of regression as the network gets them: standardised by all train rows, in f64, since f32 could not
/// tell large ones apart.
struct LabelScale {
  double magnitude = 1, mean = 0, deviation = 1;  // the latter of labels / magnitude

  static LabelScale of(std::span<const double> labels);
  float standardise(double label) const {
    return deviation > 0 ? static_cast<float>((label / magnitude - mean) / deviation) : 0.0f;
  }
};

/// Never changes once it is made.
class Ensemble {
 public:
  /// ValueError unless every row has a target, or if there is no room for contexts.
  static Ensemble fit(std::shared_ptr<LoadedNetwork> network, const EncodedTable& train,
                      const PredictorConfig& config);

  /// # Shapes: [rows, classes]. ValueError for rows of another encoder, or if the task is regression.
  std::vector<double> probabilities(const EncodedTable& rows, const PredictorConfig& config) const;
  /// ValueError for rows of another encoder, or if the task is classification.
  LabelDistributions distributions(const EncodedTable& rows, const PredictorConfig& config) const;

  /// About what was sampled or coded.
  const std::vector<std::string>& notices() const { return notices_; }
  Task task() const { return network_->network.config().task; }

  /// Of a file: tensors, and the rest as JSON.
  NamedTensors tensors() const;
  std::string to_json() const;
  /// The encoder is the one of the train table. ValueError if the network has other weights than the one that
  /// was fitted; ParseError for what to_json and tensors did not give.
  static Ensemble from(std::shared_ptr<LoadedNetwork> network, std::string_view json,
                       const NamedTensors& tensors, const TableEncoder& encoder);

 private:
  /// A table that the network reads: the train rows as a member sees them, with the labels of one coding.
  struct Dataset {
    std::int64_t member, coding;
  };
  /// Some rows' probabilities of the symbols or bins, of one dataset.
  using Take = std::function<void(std::size_t dataset, std::int64_t first_row, std::span<const float>)>;

  void set_codes(std::int64_t members, std::int64_t classes);
  const EnsembleMember& member_of(std::size_t dataset) const {
    return members_[static_cast<std::size_t>(datasets_[dataset].member)];
  }
  std::int64_t room_for_rows(const PredictorConfig& config, const EncodedTable& train) const;
  /// Cells as the members of datasets see them, of some rows for each of these datasets, as many for all.
  /// # Shapes: [datasets, rows, features]
  HostTensor seen_cells(const EncodedTable& table, std::size_t first_dataset,
                        const std::vector<std::span<const std::int64_t>>& rows) const;
  void add_contexts(const EncodedTable& train, const std::vector<std::vector<std::int64_t>>& rows,
                    const PredictorConfig& config);
  void predict(const EncodedTable& rows, const PredictorConfig& config, const Take& take) const;
  /// Of each dataset, what a label is in terms of the bins: centre and spread.
  std::vector<std::pair<double, double>> label_units() const;
  std::size_t width() const;  // of what is predicted: symbols or bins
  /// How many datasets a context has read.
  static std::int64_t sets_of(const SharedContext& context) { return context->context().is_category.size(0); }
  /// Probabilities of the symbols or bins. # Shapes: x [sets, rows, features] -> [sets, rows, width]
  std::vector<float> pass(RecordedContext<AnyBackend>& context, const HostTensor& x) const;
  void check() const;

  std::shared_ptr<LoadedNetwork> network_;
  std::vector<EnsembleMember> members_;
  std::uint64_t seed_ = 0;  // of the codes
  std::int64_t columns_ = 0, classes_ = 0;
  double temperature_ = 1;
  std::optional<ClassCodes> codes_;      // of classification
  LabelScale labels_;                    // of regression
  std::vector<Dataset> datasets_;        // in the order of the contexts
  std::vector<SharedContext> contexts_;  // each of one or more datasets
  std::vector<std::string> notices_;
};

/// What Predictor::fit makes.
struct FittedPredictor {
  TableEncoder encoder;
  Ensemble ensemble;
};

void save_fitted(const std::filesystem::path& path, const FittedPredictor& fitted);
FittedPredictor load_fitted(const std::filesystem::path& path, const PredictorConfig& config, Task task);

}  // namespace ferrite::pfn::detail
