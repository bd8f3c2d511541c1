#include "ferrite/models/pfn/splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::pfn {

namespace {

/// The rows of each class in random order. Without classes all rows are of one.
std::vector<std::vector<std::int64_t>> shuffled_classes(std::span<const std::int32_t> classes,
                                                        std::int64_t rows, std::uint64_t seed) {
  std::vector<std::vector<std::int64_t>> of_class(1);
  for (const std::int64_t row : random_permutation(rows, {seed, 0})) {
    const auto c = classes.empty() ? 0 : static_cast<std::size_t>(classes[static_cast<std::size_t>(row)]);
    if (of_class.size() <= c) of_class.resize(c + 1);
    of_class[c].push_back(row);
  }
  return of_class;
}

/// All rows in as many parts, dealt class by class.
std::vector<std::vector<std::int64_t>> dealt(std::span<const std::int32_t> classes, std::int64_t rows,
                                             std::int64_t parts, std::uint64_t seed) {
  std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(parts));
  std::size_t next = 0;
  for (const auto& rows_of_class : shuffled_classes(classes, rows, seed))
    for (const std::int64_t row : rows_of_class) out[next++ % out.size()].push_back(row);
  for (auto& part : out) std::sort(part.begin(), part.end());
  return out;
}

/// As many rows: of every class the first, then what gives each its share.
std::vector<std::int64_t> sampled(std::span<const std::int32_t> classes, std::int64_t rows,
                                  std::int64_t count, std::uint64_t seed) {
  std::vector<std::pair<double, std::int64_t>> order;  // when the row's turn comes
  for (const auto& rows_of_class : shuffled_classes(classes, rows, seed))
    for (std::size_t i = 0; i < rows_of_class.size(); ++i)
      order.emplace_back(static_cast<double>(i) / static_cast<double>(rows_of_class.size()),
                         rows_of_class[i]);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(order[static_cast<std::size_t>(i)].second);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<Fold> folds_of(const EncodedTable& table, std::int64_t folds, std::uint64_t seed) {
  table.check_targets("folds");
  const std::int64_t rows = table.rows;
  if (folds < 2 || folds > rows)
    throw ValueError(
        fmt::format("[folds] {} folds of {} rows: there must be at least 2 and at most one for "
                    "each row; ask for other folds or add rows",
                    folds, rows));
  std::vector<Fold> out;
  for (auto& test : dealt(table.classes, rows, folds, seed)) {
    Fold fold;
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    std::set_difference(all.begin(), all.end(), test.begin(), test.end(), std::back_inserter(fold.train));
    fold.test = std::move(test);
    out.push_back(std::move(fold));
  }
  return out;
}

ContextRows context_rows(const EncodedTable& train, std::int64_t most, std::uint64_t seed) {
  train.check_targets("context_rows");
  const std::int64_t least = std::max<std::int64_t>(2, train.class_count());
  if (most < least)
    throw ValueError(fmt::format("[context_rows] most {}: must be at least {}, so that every class has a row",
                                 most, least));
  if (train.rows > most)
    return {sampled(train.classes, train.rows, most, seed),
            fmt::format("of {} train rows, samples of {} are read at a time", train.rows, most)};
  ContextRows all;
  all.rows.resize(static_cast<std::size_t>(train.rows));
  std::iota(all.rows.begin(), all.rows.end(), std::int64_t{0});
  return all;
}

}  // namespace ferrite::pfn
