// What a Classifier or a Regressor is asked: which weights, where to run, how many members, how much memory.
#pragma once

#include "ferrite/models/pfn/cross_validation.hpp"

namespace ferrite::pfn {

/// Told while train rows are read and while rows are predicted: what is done, and how much of it, from 0 to
/// 1. A ProgressLine is one, by std::ref.
using PredictorProgress = std::function<void(std::string_view work, double share)>;

/// What the network computes with. Products of bf16 are several times as fast on a GPU, and probabilities
/// differ in the third digit. automatic: bf16 on a GPU, f32 elsewhere.
enum class Precision : std::uint8_t { automatic, f32, bf16 };
/// "auto", "f32" or "bf16"; ValueError for another name.
FERRITE_API Precision precision_from_string(std::string_view name);

struct FERRITE_API PredictorConfig {
  /// A file of pfn::save or of `ferrite pfn train`; if it is empty, default_weights of the task.
  std::string weights;
  /// A name of AnyBackend.
  std::string backend = "auto";
  Precision precision = Precision::automatic;
  /// Each sees columns, classes and numbers in another way; predictions are averaged.
  std::int64_t members = 4;
  /// Of the members' orders and samples.
  std::uint64_t seed = 0;
  /// If there are more train rows, each member reads a sample of as many, in which every class has its share.
  std::int64_t context_rows = 10'000;
  /// What is kept of the train rows may take this much memory on the backend. If it would take more, members
  /// read samples of fewer rows. 0: 8 GiB, or half of the memory of the machine or half of what is free on
  /// the GPU if that is less; a GPU is only asked for more than 1 GiB.
  std::int64_t context_bytes = 0;
  /// Rows that are predicted at a time; 0: by the number of columns, so that they take about 1 GiB in the
  /// standard network, and 4 GiB on a GPU.
  std::int64_t query_rows = 0;
  /// Members that go through the network together; 0: on a GPU as many as take about 4 GiB, else one.
  std::int64_t members_together = 0;
  /// Scores are divided by it before they become probabilities: less than 1 is surer.
  double temperature = 1;
  /// A GPU records its passes over small tables the second time of a size, and then launches each at once.
  /// While it records, no other thread may use the GPU; recordings keep up to 4 GiB.
  bool records = false;
  /// How tables become numbers. Its task does not count.
  EncoderConfig encoder;
  PredictorProgress progress;

  PredictorConfig with_weights(std::string v) const { return with(&PredictorConfig::weights, std::move(v)); }
  PredictorConfig with_backend(std::string v) const { return with(&PredictorConfig::backend, std::move(v)); }
  PredictorConfig with_precision(Precision v) const { return with(&PredictorConfig::precision, v); }
  PredictorConfig with_members(std::int64_t v) const { return with(&PredictorConfig::members, v); }
  PredictorConfig with_seed(std::uint64_t v) const { return with(&PredictorConfig::seed, v); }
  PredictorConfig with_context_rows(std::int64_t v) const { return with(&PredictorConfig::context_rows, v); }
  PredictorConfig with_context_bytes(std::int64_t v) const {
    return with(&PredictorConfig::context_bytes, v);
  }
  PredictorConfig with_query_rows(std::int64_t v) const { return with(&PredictorConfig::query_rows, v); }
  PredictorConfig with_members_together(std::int64_t v) const {
    return with(&PredictorConfig::members_together, v);
  }
  PredictorConfig with_temperature(double v) const { return with(&PredictorConfig::temperature, v); }
  PredictorConfig with_records(bool v) const { return with(&PredictorConfig::records, v); }
  PredictorConfig with_encoder(EncoderConfig v) const {
    return with(&PredictorConfig::encoder, std::move(v));
  }
  PredictorConfig with_progress(PredictorProgress v) const {
    return with(&PredictorConfig::progress, std::move(v));
  }

  /// ValueError for members outside [1, 1000], context_rows below 2, negative context_bytes, query_rows or
  /// members_together, and a temperature that is not positive and finite.
  void check() const;

 private:
  template <class T>
  PredictorConfig with(T PredictorConfig::*member, std::type_identity_t<T> value) const {
    return ferrite::detail::with(*this, member, std::move(value));
  }
};

/// What the environment variable FERRITE_PFN_WEIGHTS names: a file, or a folder with
/// classification.safetensors and regression.safetensors; else such a file in share/ferrite/pfn beside the
/// program or the library. ValueError, which says what to do, if there is none.
FERRITE_API std::filesystem::path default_weights(Task task);

/// The network as a model for cross_validate, of classes (probabilities) and of numbers (means): each call
/// fits what a Classifier or a Regressor fits, on tables that are encoded already. Weights are read when they
/// are first needed, once for each task. Throws as Predictor does. One thread at a time.
FERRITE_API FitPredict fit_predict(const PredictorConfig& config);

}  // namespace ferrite::pfn
