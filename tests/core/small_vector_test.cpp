// SmallVector inline, on the heap, and on the way between the two.
#include "ferrite/core/small_vector.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace ferrite {
namespace {

using Strings = SmallVector<std::string, 2>;

Strings numbered(int n) {
  Strings result;
  for (int i = 0; i < n; ++i) result.push_back("a string too long for the small buffer " + std::to_string(i));
  return result;
}

void expect_numbered(const Strings& values, int n) {
  ASSERT_EQ(values.size(), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)],
              "a string too long for the small buffer " + std::to_string(i));
  }
}

TEST(SmallVector, KeepsItsElementsWhenItGrowsOutOfTheInlineStorage) {
  for (int n : {0, 1, 2, 3, 5, 40}) expect_numbered(numbered(n), n);
}

TEST(SmallVector, CopiesAndMovesBetweenAllSizes) {
  for (int from : {0, 1, 2, 3, 9}) {
    for (int to : {0, 1, 2, 3, 9}) {
      const Strings source = numbered(from);
      Strings copy = source;
      expect_numbered(copy, from);
      Strings moved = std::move(copy);
      expect_numbered(moved, from);
      EXPECT_TRUE(copy.empty());  // NOLINT(bugprone-use-after-move): the contract is "empty and usable"
      copy.push_back("again");
      EXPECT_EQ(copy[0], "again");
      Strings target = numbered(to);
      target = source;
      expect_numbered(target, from);
      target = numbered(to);
      target = std::move(moved);
      expect_numbered(target, from);
      Strings& same = target;
      target = same;
      expect_numbered(target, from);
    }
  }
}

TEST(SmallVector, ResizesBothWaysAndReleasesWhatItDrops) {
  auto shared = std::make_shared<int>(7);
  SmallVector<std::shared_ptr<int>, 3> values;
  values.resize(5);
  for (auto& value : values) value = shared;
  EXPECT_EQ(shared.use_count(), 6);
  values.resize(2);
  EXPECT_EQ(shared.use_count(), 3);
  values.clear();
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(shared.use_count(), 1);
  values.push_back(shared);
  values = {};
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(SmallVector, PushBackOfOwnElementSurvivesGrowth) {
  Strings values = numbered(2);
  values.push_back(values[0]);
  EXPECT_EQ(values[2], values[0]);
}

TEST(SmallVector, WorksAsSpanAndWithMoveOnlyTypes) {
  SmallVector<std::unique_ptr<int>, 1> values;
  for (int i = 0; i < 4; ++i) values.push_back(std::make_unique<int>(i));
  std::span<const std::unique_ptr<int>> view = std::as_const(values);
  int sum = 0;
  for (const auto& value : view) sum += *value;
  EXPECT_EQ(sum, 6);
  const SmallVector<int, 4> three{1, 2, 3};
  EXPECT_EQ(std::vector<int>(three.begin(), three.end()), (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace ferrite
