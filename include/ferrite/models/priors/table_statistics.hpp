// Tables in numbers, to compare drawn datasets with real ones and with a user's own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/core/export.hpp"
#include "ferrite/io/host_tensor.hpp"

namespace ferrite::priors {

/// A feature. NaN is a missing cell; each different category or text has a number.
struct TableColumn {
  std::vector<double> values;
  bool categories = false;
};

/// Statistics of one table. Correlations and skewness leave out infinite cells. A column with a single value,
/// and text that names more than half of the rows, do not count. A column is categorical if it says so or has
/// at most `few_values` different numbers.
struct TableStatistics {
  std::int64_t rows = 0, features = 0;
  double categorical = 0;  ///< share of the features
  std::optional<double>
      correlation;     ///< mean |Pearson| of all pairs of numeric features, where both are there
  double missing = 0;  ///< share of the cells
  std::optional<double> largest_class;  ///< share of the rows that have a target
  std::optional<double> classes;
  std::optional<double> levels;  ///< median over the categorical features
  std::optional<double> skew;    ///< median |skewness| of the numeric features
};
inline constexpr int few_values = 10;

/// `target` holds class numbers, NaN where there is none; it is empty for a table without classes. Throws
/// ValueError unless all columns have the same length.
FERRITE_API TableStatistics table_statistics(std::span<const TableColumn> features,
                                             std::span<const double> target = {});
/// Statistics of each dataset of a batch (the tensors of priors::to_host) that has rows.
FERRITE_API std::vector<TableStatistics> batch_statistics(const NamedTensors& batch);

/// Quartiles of one statistic over many tables; between two tables they are interpolated.
struct Quartiles {
  double mean = 0, lower = 0, median = 0, upper = 0;
};
/// The names of the statistics that are compared, as in TableStatistics.
inline constexpr std::array<std::string_view, 8> statistic_names = {
    "rows", "features", "categorical", "correlation", "missing", "largest_class", "levels", "skew"};
/// Nothing if the table does not have it. Throws ValueError for another name.
FERRITE_API std::optional<double> statistic(const TableStatistics& table, std::string_view name);
/// Over the tables that have it; nothing if no table does.
FERRITE_API std::optional<Quartiles> quartiles(std::span<const TableStatistics> tables,
                                               std::string_view name);

/// Of the real tables in benches/results/real-tables.csv, to which the preset "realistic" is fitted.
inline constexpr int real_tables = 60;
FERRITE_API Quartiles real_quartiles(std::string_view name);

}  // namespace ferrite::priors
