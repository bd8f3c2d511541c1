// Which rows are learned from and which are predicted: folds, and samples of tables with too many rows. All
// depend on the rows' classes and the seed alone.
#pragma once

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::pfn {

/// Rows in ascending order; together they are all.
struct Fold {
  std::vector<std::int64_t> train, test;
};

/// Of the rows of a table, which have targets. Every row is in one test part. The parts differ by one row at
/// most, and so do the rows of each class in them. A class with one row is in no train part of its fold.
/// ValueError unless there are 2 to `rows` folds.
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
