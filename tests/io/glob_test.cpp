// Files by patterns of their names.
#include "ferrite/io/glob.hpp"

#include "io_test.hpp"

namespace ferrite {
namespace {

using testing::expect_error;
using testing::ScratchFolder;
using testing::spill;

using Paths = std::vector<std::filesystem::path>;

TEST(MatchingFiles, AreThoseOfThePatternAscending) {
  const ScratchFolder folder;
  for (const char* name : {"b_10.bin", "b_02.bin", "a_01.bin", "b_1.txt"}) spill(folder / name, "x");
  EXPECT_EQ(matching_files((folder / "b_*.bin").string()), (Paths{folder / "b_02.bin", folder / "b_10.bin"}));
  EXPECT_EQ(matching_files((folder / "[ab]_0?.bin").string()),
            (Paths{folder / "a_01.bin", folder / "b_02.bin"}));
  expect_error<ValueError>([&] { matching_files((folder / "c*").string()); }, {"no file matches '", "c*"});
}

TEST(MatchingFiles, ANameStandsForItself) {
  const ScratchFolder folder;
  EXPECT_EQ(matching_files("not there.bin"), (Paths{"not there.bin"}));
  spill(folder / "odd[1].bin", "x");
  spill(folder / "odd1.bin", "x");
  EXPECT_EQ(matching_files((folder / "odd[1].bin").string()), (Paths{folder / "odd[1].bin"}));
}

}  // namespace
}  // namespace ferrite
