// Folds and samples keep the shares of classes.
#include "ferrite/models/pfn/splits.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ferrite/core/error.hpp"

namespace ferrite::testing {
namespace {

using Classes = std::vector<std::int32_t>;

/// Of 1000 rows: 700, 250, 47 and 3.
Classes uneven() {
  Classes classes;
  for (int i = 0; i < 1000; ++i) classes.push_back(i % 1000 < 700 ? 0 : i < 950 ? 1 : i < 997 ? 2 : 3);
  return classes;
}

std::map<int, int> counts_of(const Classes& classes, const std::vector<std::int64_t>& rows) {
  std::map<int, int> counts;
  for (const std::int64_t r : rows) ++counts[classes[static_cast<std::size_t>(r)]];
  return counts;
}

pfn::EncodedTable table_of(const Classes& classes, std::int64_t class_count) {
  pfn::EncodedTable table;
  table.features = {{"x", "x", false, 0}};
  table.rows = static_cast<std::int64_t>(classes.size());
  table.x.resize(classes.size());
  table.classes = classes;
  for (std::int64_t c = 0; c < class_count; ++c) table.class_names.push_back(std::to_string(c));
  return table;
}

TEST(Folds, HoldEveryRowOnceAndTheSharesOfClasses) {
  const Classes classes = uneven();
  const pfn::EncodedTable table = table_of(classes, 4);
  const auto folds = pfn::folds_of(table, 5, 3);
  std::set<std::int64_t> tested;
  for (const pfn::Fold& fold : folds) {
    EXPECT_EQ(fold.test.size(), 200u);
    EXPECT_EQ(fold.train.size(), 800u);
    EXPECT_TRUE(std::is_sorted(fold.train.begin(), fold.train.end()));
    tested.insert(fold.test.begin(), fold.test.end());
    const auto counts = counts_of(classes, fold.test);
    EXPECT_EQ(counts.at(0), 140);
    EXPECT_EQ(counts.at(1), 50);
    EXPECT_TRUE(counts.at(2) == 9 || counts.at(2) == 10);
  }
  EXPECT_EQ(tested.size(), 1000u);
  EXPECT_EQ(pfn::folds_of(table, 5, 3)[2].test, folds[2].test);
  EXPECT_NE(pfn::folds_of(table, 5, 4)[2].test, folds[2].test);
  pfn::EncodedTable numbers = table_of(Classes(11), 0);
  numbers.task = pfn::Task::regression;
  numbers.targets.resize(11);
  numbers.classes.clear();
  EXPECT_EQ(pfn::folds_of(numbers, 3, 0)[0].test.size(), 4u);
  EXPECT_THROW(pfn::folds_of(numbers, 12, 0), ValueError);
  EXPECT_THROW(pfn::folds_of(table, 1, 0), ValueError);
  EXPECT_THROW(pfn::folds_of(table_of({0, -1, 1}, 2), 2, 0), ValueError);
}

TEST(Contexts, AreSaidIfTheyAreNotAllRows) {
  const Classes classes = uneven();
  const pfn::EncodedTable table = table_of(classes, 4);
  const auto all = pfn::context_rows(table, 1000, 0);
  EXPECT_EQ(all.rows.size(), 1000u);
  EXPECT_TRUE(all.notice.empty());

  const auto sample = pfn::context_rows(table, 100, 0);
  EXPECT_EQ(sample.rows.size(), 100u);
  EXPECT_TRUE(std::is_sorted(sample.rows.begin(), sample.rows.end()));
  const auto counts = counts_of(classes, sample.rows);
  EXPECT_NEAR(counts.at(0), 70, 2);
  EXPECT_NEAR(counts.at(1), 25, 2);
  EXPECT_GE(counts.at(3), 1);
  EXPECT_EQ(sample.notice, "of 1000 train rows, samples of 100 are read at a time");
  EXPECT_NE(pfn::context_rows(table, 100, 1).rows, sample.rows);
  EXPECT_EQ(pfn::context_rows(table, 4, 1).rows.size(), 4u);
  EXPECT_THROW(pfn::context_rows(table, 3, 0), ValueError);
}

}  // namespace
}  // namespace ferrite::testing
