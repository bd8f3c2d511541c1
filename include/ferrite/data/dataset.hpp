// Dataset: features and targets in host memory, row by row.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/data/batch.hpp"
#include "ferrite/io/csv.hpp"

namespace ferrite::data {

/// How columns become features and targets.
struct CsvDatasetConfig {
  /// The column to predict; all others are features, in the file's order.
  std::string target = "target";
  DType feature_dtype = DType::f32;
  /// i64 for class ids, a floating dtype for regression.
  DType target_dtype = DType::i64;
  CsvConfig csv = {};

  CsvDatasetConfig with_target(std::string v) const {
    return detail::with(*this, &CsvDatasetConfig::target, v);
  }
  CsvDatasetConfig with_feature_dtype(DType v) const {
    return detail::with(*this, &CsvDatasetConfig::feature_dtype, v);
  }
  CsvDatasetConfig with_target_dtype(DType v) const {
    return detail::with(*this, &CsvDatasetConfig::target_dtype, v);
  }
  CsvDatasetConfig with_csv(CsvConfig v) const { return detail::with(*this, &CsvDatasetConfig::csv, v); }
};

/// A value: copies share the bytes.
class FERRITE_API Dataset {
 public:
  /// # Shapes: x [N, ...], y [N, ...]. Throws ShapeError if N differs.
  Dataset(HostTensor x, HostTensor y);
  template <class B>
  Dataset(const Tensor<B>& x, const Tensor<B>& y) : Dataset(to_host(x), to_host(y)) {}
  /// # Shapes: x [rows, columns - 1], y [rows]. Throws as read_csv does; ValueError for an unknown target;
  /// ParseError with file, line and column for a value that its dtype cannot hold (a real target of i64).
  static Dataset from_csv(const std::filesystem::path& path, const CsvDatasetConfig& config = {});

  std::int64_t size() const { return x_.shape()[0]; }
  const HostTensor& x() const { return x_; }
  const HostTensor& y() const { return y_; }
  /// Inputs beside x, row for row: see with_input.
  const std::vector<HostTensor>& more() const { return more_; }

  /// The rows of the given numbers, in their order. Throws ValueError if one is out of range.
  HostBatch rows(std::span<const std::int64_t> numbers) const;
  HostBatch all() const { return {x_, y_, more_}; }

  /// Two parts without a common row: round(fraction N) rows, and the rest. The choice depends only on the
  /// seed. Throws ValueError unless 0 <= fraction <= 1.
  std::pair<Dataset, Dataset> split(double fraction, std::uint64_t seed) const;
  /// The same rows with features of another shape, [N, row...].
  Dataset with_row_shape(const Shape& row) const;
  /// The same with other features in place of x.
  Dataset with_x(HostTensor x) const;
  /// The same with one more input, which batches hold in `more`. Throws ShapeError unless it has a row per
  /// example.
  Dataset with_input(HostTensor input) const;
  template <class B>
  Dataset with_input(const Tensor<B>& input) const {
    return with_input(to_host(input));
  }

 private:
  HostTensor x_, y_;
  std::vector<HostTensor> more_;
};

/// Moves every feature to zero mean and unit variance, as measured on one tensor and applied to others.
class FERRITE_API Standardizer {
 public:
  /// # Shapes: x [N, ...], N at least 1. A feature that never changes is only centred.
  static Standardizer fit(const HostTensor& x);
  /// # Shapes: x [M, ...], f32 or f64, with the features of `fit` -> the same. ShapeError otherwise.
  HostTensor apply(const HostTensor& x) const;
  Dataset apply(const Dataset& data) const { return data.with_x(apply(data.x())); }

  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& deviation() const { return deviation_; }

  /// "mean" and "deviation", f64 [features], as write_safetensors takes them; from_state is the inverse. It
  /// throws as check_state does, and ValueError unless all are finite and deviations positive.
  NamedTensors state() const;
  static Standardizer from_state(const NamedTensors& state);

 private:
  std::vector<double> mean_, deviation_;
};

}  // namespace ferrite::data
