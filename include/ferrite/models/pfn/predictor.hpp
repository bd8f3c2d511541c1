// Predictor: what a Classifier and a Regressor have in common.
#pragma once

#include "ferrite/core/error.hpp"
#include "ferrite/models/pfn/predictor_config.hpp"

namespace ferrite::pfn {

namespace detail {
class Ensemble;
struct FittedPredictor;
}  // namespace detail

/// A value; copies share what was fitted, which never changes. One thread at a time.
class FERRITE_API Predictor {
 public:
  bool is_fitted() const { return fitted_ != nullptr; }
  /// How tables become numbers. ValueError before fit.
  const TableEncoder& encoder() const;
  /// What the fit left out, guessed or sampled, then the same of the last prediction; one sentence each.
  const std::vector<std::string>& notices() const { return notices_; }

  /// Encoder, members and what they keep of the train rows, in one safetensors file; not the weights, of
  /// which it has a fingerprint. It is about as large as the memory that the fit takes. Throws IoError, and
  /// ValueError before fit.
  void save(const std::filesystem::path& path) const;

 protected:
  Predictor(PredictorConfig config, Task task);
  void learn(const Table& train, const std::string& target);
  void learn(const Table& train, const TableEncoder& encoder);
  void read(const std::filesystem::path& path);
  /// The rows of a table as the encoder gives them; its notices become those of the last prediction.
  EncodedTable encoded(const Table& rows);
  /// ValueError before fit.
  const detail::Ensemble& ensemble() const;
  const PredictorConfig& config() const { return config_; }

 private:
  const detail::FittedPredictor& fitted() const;
  void tell(const std::vector<std::string>& of_rows);

  PredictorConfig config_;
  Task task_;
  std::shared_ptr<const detail::FittedPredictor> fitted_;
  std::vector<std::string> notices_;
};

/// What a file of Predictor::save predicts. Throws IoError; ParseError if the file is none.
FERRITE_API Task fitted_task(const std::filesystem::path& path);

}  // namespace ferrite::pfn
