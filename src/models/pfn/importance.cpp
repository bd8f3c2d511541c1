// Which columns matter: the loss of score when one is dealt to other rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/models/pfn/metrics.hpp"

namespace ferrite::pfn {

double default_score(const EncodedTable& rows, std::span<const double> predictions) {
  return rows.task == Task::classification ? auc(predictions, rows.classes, rows.class_count())
                                           : r2(predictions, rows.targets);
}

std::vector<ColumnImportance> permutation_importance(const EncodedTable& rows, const Predict& predict,
                                                     const Score& score, std::int64_t repeats,
                                                     std::uint64_t seed,
                                                     const std::vector<std::string>& columns) {
  rows.check_targets("permutation_importance");
  if (repeats < 1)
    throw ValueError(fmt::format("[permutation_importance] {} repeats: at least 1 is needed", repeats));
  const double whole = score(rows, predict(rows));
  std::vector<ColumnImportance> all;
  EncodedTable dealt = rows;
  const auto width = static_cast<std::size_t>(rows.columns());
  for (std::size_t begin = 0, end = 0; begin < width; begin = end) {
    const std::string& column = rows.features[begin].column;
    for (end = begin; end < width && rows.features[end].column == column; ++end) continue;
    if (!columns.empty() && std::find(columns.begin(), columns.end(), column) == columns.end()) continue;
    ColumnImportance found{column, 0, 0, {}};
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      const auto stream = static_cast<std::uint64_t>(all.size()) * static_cast<std::uint64_t>(repeats) +
                          static_cast<std::uint64_t>(repeat);
      const std::vector<std::int64_t> from = random_permutation(rows.rows, {seed, stream});
      for (std::size_t r = 0; r < from.size(); ++r)
        for (std::size_t c = begin; c < end; ++c) dealt.x[r * width + c] = rows.row(from[r])[c];
      found.losses.push_back(whole - score(dealt, predict(dealt)));
    }
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows.rows); ++r)
      for (std::size_t c = begin; c < end; ++c) dealt.x[r * width + c] = rows.x[r * width + c];
    const auto count = static_cast<double>(repeats);
    for (const double lost : found.losses) found.mean += lost / count;
    for (const double lost : found.losses)
      found.deviation += (lost - found.mean) * (lost - found.mean) / count;
    found.deviation = std::sqrt(found.deviation);
    all.push_back(std::move(found));
  }
  return all;
}

}  // namespace ferrite::pfn
