// Which rows are learned from and which are predicted: folds, and samples of tables with too many rows. All
// depend on the rows' classes and the seed alone.
#pragma once

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::pfn {

/// Rows in ascending order; together they are all.
struct Fold {
  std::vector<std::int64_t> train, test;
};

/// Every row is in one test part. The parts differ by one row at most, and so do the rows of each class in
/// them. A class with one row is in no train part of its fold. ValueError unless there are 2 to `rows` folds.
FERRITE_API std::vector<Fold> stratified_folds(std::span<const std::int32_t> classes, std::int64_t folds,
                                               std::uint64_t seed);
/// Without classes, for regression.
FERRITE_API std::vector<Fold> plain_folds(std::int64_t rows, std::int64_t folds, std::uint64_t seed);
/// By the task of a table whose rows have targets.
FERRITE_API std::vector<Fold> folds_of(const EncodedTable& table, std::int64_t folds, std::uint64_t seed);

/// Rows to read, ascending, and a sentence about them if they are not all; else it is empty.
struct ContextRows {
  std::vector<std::int64_t> rows;
  std::string notice;
};
/// All rows, or if there are more, a sample of `most`, in which every class has its share and at least one
/// row. ValueError if `most` is less than 2, or than the number of classes.
FERRITE_API ContextRows context_rows(const EncodedTable& train, std::int64_t most, std::uint64_t seed);

}  // namespace ferrite::pfn
