// How much one column tells about the target. Its values are cut into ten bins of equal numbers of rows, its
// categories are bins of their own, and missing cells are one more. Both scores are near zero for a column of
// chance, however many bins it has.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/pfn/encoder_state.hpp"

namespace ferrite::pfn::detail {

namespace {

/// The bin of every row, numbered from 0 without gaps.
struct Bins {
  std::vector<std::int32_t> of_row;
  std::int32_t count = 0;
};

Bins bins_of(std::span<const float> column, bool is_category) {
  constexpr std::size_t most = 10;
  Bins bins;
  bins.of_row.resize(column.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < column.size(); ++i)
    if (!std::isnan(column[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return column[a] != column[b] ? column[a] < column[b] : a < b;
  });
  std::size_t last_slot = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin;  // equal values stay together
    while (end < order.size() && column[order[end]] == column[order[begin]]) ++end;
    const std::size_t slot = is_category ? begin : (begin + (end - begin) / 2) * most / order.size();
    if (begin > 0 && slot != last_slot) ++bins.count;
    last_slot = slot;
    for (std::size_t i = begin; i < end; ++i) bins.of_row[order[i]] = bins.count;
  }
  if (!order.empty()) ++bins.count;
  if (order.size() == column.size()) return bins;
  for (std::size_t i = 0; i < column.size(); ++i)
    if (std::isnan(column[i])) bins.of_row[i] = bins.count;
  ++bins.count;
  return bins;
}

}  // namespace

double class_score(std::span<const float> column, bool is_category, std::span<const std::int32_t> classes,
                   std::int64_t class_count) {
  const Bins bins = bins_of(column, is_category);
  const auto width = static_cast<std::size_t>(class_count);
  std::vector<double> joint(static_cast<std::size_t>(bins.count) * width), of_bin(joint.size() / width),
      of_class(width);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto b = static_cast<std::size_t>(bins.of_row[i]), c = static_cast<std::size_t>(classes[i]);
    ++joint[b * width + c];
    ++of_bin[b];
    ++of_class[c];
  }
  const auto rows = static_cast<double>(classes.size());
  double information = 0;
  for (std::size_t i = 0; i < joint.size(); ++i)
    if (joint[i] > 0)
      information += joint[i] / rows * std::log(joint[i] * rows / (of_bin[i / width] * of_class[i % width]));
  const double by_chance = (bins.count - 1.0) * (static_cast<double>(class_count) - 1) / (2 * rows);
  return information - by_chance;
}

double variance_score(std::span<const float> column, bool is_category, std::span<const double> targets) {
  const Bins bins = bins_of(column, is_category);
  const auto rows = static_cast<double>(targets.size());
  const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / rows;
  std::vector<double> sums(static_cast<std::size_t>(bins.count)), counts(sums.size());
  double total = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double deviation = targets[i] - mean;
    sums[static_cast<std::size_t>(bins.of_row[i])] += deviation;
    ++counts[static_cast<std::size_t>(bins.of_row[i])];
    total += deviation * deviation;
  }
  double between = 0;
  for (std::size_t b = 0; b < sums.size(); ++b) between += sums[b] * sums[b] / counts[b];
  const double free_rows = rows - bins.count;
  if (!(total > 0) || free_rows <= 0) return 0;
  return 1 - (1 - between / total) * (rows - 1) / free_rows;
}

}  // namespace ferrite::pfn::detail
