// Statistics of tables, real and drawn.
#include "ferrite/models/priors/table_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ferrite/core/error.hpp"
#include "ferrite/models/priors/ops.hpp"

namespace ferrite::priors {
namespace {

/// Between two values in proportion. Needs at least one.
double quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double next = values[std::min(below + 1, values.size() - 1)];
  return std::lerp(values[below], next, place - static_cast<double>(below));
}

std::optional<double> median_of(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

std::int64_t distinct_values(const std::vector<double>& values) {
  std::vector<double> sorted;
  for (const double v : values)
    if (!std::isnan(v)) sorted.push_back(v);
  std::sort(sorted.begin(), sorted.end());
  return std::unique(sorted.begin(), sorted.end()) - sorted.begin();
}

/// The column minus its mean, which then does not affect sums of products. An infinite cell, of which there
/// is no product, becomes NaN.
std::vector<double> centred(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v, ++count;
  std::vector<double> out = values;
  for (double& v : out) v = std::isfinite(v) ? v - sum / count : std::numeric_limits<double>::quiet_NaN();
  return out;
}

/// Nothing where sums overflow.
std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> skewness(const std::vector<double>& centred) {
  double square = 0, cube = 0, count = 0;
  for (const double d : centred)
    if (!std::isnan(d)) square += d * d, cube += d * d * d, ++count;
  return finite(std::abs(cube / count / std::pow(square / count, 1.5)));
}

/// |Pearson| over the rows where both are present; nothing if one of them is constant there.
std::optional<double> correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t r = 0; r < a.size(); ++r) {
    if (std::isnan(a[r]) || std::isnan(b[r])) continue;
    ++n, x += a[r], y += b[r], xx += a[r] * a[r], yy += b[r] * b[r], xy += a[r] * b[r];
  }
  if (n < 2) return std::nullopt;
  const double left = xx - x * x / n, right = yy - y * y / n;
  if (left <= 1e-12 * xx || right <= 1e-12 * yy) return std::nullopt;
  const auto r = finite(std::abs(xy - x * y / n) / std::sqrt(left * right));
  return r ? std::optional(std::min(1.0, *r)) : std::nullopt;
}

std::optional<double> mean_correlation(const std::vector<std::vector<double>>& columns) {
  double sum = 0, pairs = 0;
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (const auto c = correlation(columns[i], columns[j])) sum += *c, ++pairs;
  return pairs > 0 ? std::optional(sum / pairs) : std::nullopt;
}

void add_classes(std::span<const double> target, TableStatistics& table) {
  std::map<double, std::int64_t> sizes;
  std::int64_t all = 0, most = 0;
  for (const double t : target)
    if (!std::isnan(t)) most = std::max(most, ++sizes[t]), ++all;
  if (all == 0) return;
  table.classes = static_cast<double>(sizes.size());
  table.largest_class = static_cast<double>(most) / static_cast<double>(all);
}

}  // namespace

TableStatistics table_statistics(std::span<const TableColumn> features, std::span<const double> target) {
  TableStatistics table;
  table.rows = static_cast<std::int64_t>(features.empty() ? target.size() : features[0].values.size());
  std::int64_t categorical = 0, missing = 0;
  std::vector<double> levels, skews;
  std::vector<std::vector<double>> numeric;
  for (const TableColumn& column : features) {
    if (column.values.size() != static_cast<std::size_t>(table.rows) ||
        (!target.empty() && target.size() != column.values.size()))
      throw ValueError(
          fmt::format("[table_statistics] columns of {} and {} rows, a target of {}: all need the same",
                      table.rows, column.values.size(), target.size()));
    const std::int64_t distinct = distinct_values(column.values);
    if (distinct < 2 || (column.categories && 2 * distinct > table.rows)) continue;
    ++table.features;
    missing +=
        std::count_if(column.values.begin(), column.values.end(), [](double v) { return std::isnan(v); });
    if (column.categories || distinct <= few_values) {
      ++categorical;
      levels.push_back(static_cast<double>(distinct));
    } else {
      numeric.push_back(centred(column.values));
      if (const auto s = skewness(numeric.back())) skews.push_back(*s);
    }
  }
  const auto columns = static_cast<double>(std::max<std::int64_t>(table.features, 1));
  table.categorical = static_cast<double>(categorical) / columns;
  table.missing =
      static_cast<double>(missing) / (columns * static_cast<double>(std::max<std::int64_t>(table.rows, 1)));
  table.correlation = mean_correlation(numeric);
  table.levels = median_of(std::move(levels));
  table.skew = median_of(std::move(skews));
  add_classes(target, table);
  return table;
}

std::vector<TableStatistics> batch_statistics(const NamedTensors& batch) {
  const auto info = batch.find("info")->second.as<std::int32_t>(),
             levels = batch.find("levels")->second.as<std::int32_t>();
  const HostTensor &x = batch.find("x")->second, &y = batch.find("y")->second;
  const auto values = x.as<float>();
  const auto all_rows = static_cast<std::size_t>(x.shape()[1]),
             all_features = static_cast<std::size_t>(x.shape()[2]);
  std::vector<TableStatistics> tables;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.shape()[0]); ++i) {
    const std::int32_t* facts = info.data() + i * info_fields;
    const auto rows = static_cast<std::size_t>(facts[info_rows]);
    if (rows == 0) continue;
    std::vector<TableColumn> columns(static_cast<std::size_t>(facts[info_features]));
    for (std::size_t j = 0; j < columns.size(); ++j) {
      columns[j].categories = levels[i * all_features + j] > 0;
      for (std::size_t r = 0; r < rows; ++r)
        columns[j].values.push_back(static_cast<double>(values[(i * all_rows + r) * all_features + j]));
    }
    std::vector<double> target;
    for (std::size_t r = 0; facts[info_classes] > 0 && r < rows; ++r)
      target.push_back(static_cast<double>(y.as<std::int64_t>()[i * all_rows + r]));
    tables.push_back(table_statistics(columns, target));
  }
  return tables;
}

namespace {

std::size_t place_of(std::string_view name) {
  const auto found = std::find(statistic_names.begin(), statistic_names.end(), name);
  if (found == statistic_names.end())
    throw ValueError(fmt::format("[statistic] '{}': there are {}", name, fmt::join(statistic_names, ", ")));
  return static_cast<std::size_t>(found - statistic_names.begin());
}

}  // namespace

std::optional<double> statistic(const TableStatistics& t, std::string_view name) {
  const std::optional<double> all[] = {static_cast<double>(t.rows),
                                       static_cast<double>(t.features),
                                       t.categorical,
                                       t.correlation,
                                       t.missing,
                                       t.largest_class,
                                       t.levels,
                                       t.skew};
  return all[place_of(name)];
}

std::optional<Quartiles> quartiles(std::span<const TableStatistics> tables, std::string_view name) {
  std::vector<double> values;
  double sum = 0;
  for (const TableStatistics& t : tables)
    if (const auto v = statistic(t, name)) values.push_back(*v), sum += *v;
  if (values.empty()) return std::nullopt;
  return Quartiles{sum / static_cast<double>(values.size()), quantile(values, 0.25), quantile(values, 0.5),
                   quantile(values, 0.75)};
}

Quartiles real_quartiles(std::string_view name) {
  static constexpr Quartiles real[] = {
      {3012.4667, 211.75, 692.5, 2460},  // rows
      {15.55, 7, 11, 17.25},             // features
      {0.4066, 0.1769, 0.4059, 0.6667},  // categorical
      {0.2901, 0.1529, 0.2277, 0.3854},  // correlation
      {0.0173, 0, 0, 0.007},             // missing
      {0.5631, 0.3969, 0.5684, 0.6745},  // largest_class
      {3.92, 2, 3, 5},                   // levels
      {1.4728, 0.3488, 0.6481, 1.4549},  // skew
  };
  return real[place_of(name)];
}

}  // namespace ferrite::priors
