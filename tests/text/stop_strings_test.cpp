// Texts end before a stop string, however they are cut into parts.
#include "ferrite/text/stop_strings.hpp"

#include <gtest/gtest.h>

#include "ferrite/core/error.hpp"

namespace ferrite::text {
namespace {

/// Everything that is shown of a text that comes in parts of `size` bytes.
std::string shown(const std::vector<std::string>& stops, const std::string& text, std::size_t size) {
  StopStrings filter(stops);
  std::string all;
  for (std::size_t i = 0; i < text.size(); i += size) all += filter.push(text.substr(i, size));
  return all + filter.finish();
}

TEST(StopStrings, EndATextHoweverItIsCut) {
  for (std::size_t size = 1; size < 12; ++size) {
    EXPECT_EQ(shown({}, "all of it", size), "all of it");
    EXPECT_EQ(shown({"END"}, "one EN two END three", size), "one EN two ");
    EXPECT_EQ(shown({"aab"}, "aaaabc", size), "aa");
    EXPECT_EQ(shown({"xyz", "two"}, "one two xyz", size), "one ");
    EXPECT_EQ(shown({"wo", "two"}, "one two", size), "one ");  // both end there: the longer one
    EXPECT_EQ(shown({"END"}, "no stop, EN", size), "no stop, EN");
    EXPECT_EQ(shown({"END"}, "END", size), "");
  }
}

TEST(StopStrings, ShowWhatCannotBeginOneAtOnce) {
  StopStrings filter({"\n\n"});
  EXPECT_EQ(filter.push("one\n"), "one");
  EXPECT_FALSE(filter.found());
  EXPECT_EQ(filter.push("two"), "\ntwo");
  EXPECT_EQ(filter.push("\n\nthree"), "");
  EXPECT_TRUE(filter.found());
  EXPECT_EQ(filter.push("four"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopStrings, AreNotEmpty) { EXPECT_THROW(StopStrings({"a", ""}), ValueError); }

}  // namespace
}  // namespace ferrite::text
