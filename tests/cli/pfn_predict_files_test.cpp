// ferrite pfn predict on files as people have them: small, wide, and no tables at all.
#include <fstream>

#include "cli/cli_test.hpp"
#include "ferrite/models/pfn/table.hpp"
#include "models/pfn/pfn_test.hpp"

namespace ferrite::testing {
namespace {

struct PfnPredictFiles : ::testing::Test {
  ScratchFolder folder;

  void write(const char* name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  /// The rows of b.csv from those of a.csv; by the weights that come with ferrite if none are named.
  Reply predict(const std::string& target, const std::string& weights) const {
    const auto at = [&](const char* name) { return " '" + (folder / name).string() + "'"; };
    return run_ferrite("pfn predict --backend cpu --members 1 --target " + target + " --train" + at("a.csv") +
                           " --test" + at("b.csv") + " --out" + at("p.csv"),
                       "FERRITE_PFN_WEIGHTS='" + weights + "'");
  }
};

TEST_F(PfnPredictFiles, WithTheWeightsThatComeWithFerriteItIsRight) {
  std::ifstream iris(test_paths::source_folder() + "/tests/models/pfn/sklearn/iris.csv");
  std::string line, train, test;
  for (int row = 0; std::getline(iris, line); ++row) {
    if (row == 0 || row % 2 == 1) train += line + "\n";
    if (row == 0 || row % 2 == 0) test += line + "\n";
  }
  write("a.csv", train);
  write("b.csv", test);
  const Reply reply = predict("target", "");
  ASSERT_EQ(reply.code, 0) << reply.output;
  const pfn::Table made = pfn::read_table(folder / "p.csv"), truth = pfn::read_table(folder / "b.csv");
  ASSERT_EQ(made.rows(), 75);
  EXPECT_EQ(made.columns().size(), 4u);
  int right = 0;
  for (std::size_t r = 0; r < 75; ++r) {
    right += made.find("prediction")->numbers[r] == truth.find("target")->numbers[r];
    EXPECT_NEAR(made.find("p_0")->numbers[r] + made.find("p_1")->numbers[r] + made.find("p_2")->numbers[r], 1,
                1e-5);
  }
  EXPECT_GE(right, 69) << reply.output;  // of 75
}

TEST_F(PfnPredictFiles, ManyColumnsAreFewerInNoTime) {
  std::string text;
  for (int c = 0; c < 2000; ++c) text += "c" + std::to_string(c) + ",";
  text += "y\n";
  for (int r = 0; r < 6; ++r) {
    for (int c = 0; c < 2000; ++c) text += std::to_string((r * 7919 + c * 31) % 97) + ",";
    text += r % 2 == 0 ? "u\n" : "v\n";
  }
  write("a.csv", text);
  write("b.csv", text);
  Cpu cpu;
  auto model = lively_pfn(cpu, small_pfn());
  pfn::save(folder / "small.safetensors", model);
  const Reply reply = predict("y", (folder / "small.safetensors").string());
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "notice: of 2000 columns, the 500 that tell most about 'y' are used");
  expect_contains(reply.output, "6 rows, classification");
}

TEST_F(PfnPredictFiles, ThatAreNoTablesAreNamed) {
  const std::string table = "a,kind\n1,u\n2,v\n3,u\n4,v\n", bytes("\x89PNG\r\n\x1a\n\0\0\xff\xfe", 12);
  for (const std::string name : {"a.csv", "b.csv"}) {
    write("a.csv", name == "a.csv" ? bytes : table);
    write("b.csv", name == "b.csv" ? bytes : table);
    const Reply reply = predict("kind", "");
    EXPECT_EQ(reply.code, 2);
    expect_contains(reply.output, name + ": is binary, no CSV file; save the table as CSV");
    EXPECT_FALSE(std::filesystem::exists(folder / "p.csv"));
  }
}

}  // namespace
}  // namespace ferrite::testing
