// ferrite gpt import and ferrite gpt export as a user runs them, on the GPT-2 in tests/models/gpt/small,
// which transformers wrote.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli_test.hpp"

namespace ferrite::testing {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct GptImport : ::testing::Test {
  ScratchFolder folder;
  std::filesystem::path small = std::filesystem::path(test_paths::source_folder()) / "tests/models/gpt/small";

  static std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }
  std::string at(const std::string& name) { return quoted(folder / name); }
  Reply import(const std::string& more, const std::string& environment = "") {
    return run_ferrite("gpt import --from " + quoted(small) + " " + more, environment);
  }
};

TEST_F(GptImport, ExplainsItselfWithExamples) {
  for (const std::string command : {"import", "export"}) {
    const Reply help = run_ferrite("gpt " + command + " --help");
    EXPECT_EQ(help.code, 0);
    expect_contains(help.output, "Examples:\n  ferrite gpt " + command);
  }
}

TEST_F(GptImport, GoesThereAndBack) {
  const Reply there = import("--out " + at("model.safetensors"));
  ASSERT_EQ(there.code, 0) << there.output;
  expect_contains(there.output,
                  "29216 parameters (2 layers, 4 heads, dim 32, context 16, 101 tokens), f32, ");
  const Reply back = run_ferrite("gpt export --model " + at("model.safetensors") + " --to " + at("hf"));
  ASSERT_EQ(back.code, 0) << back.output;
  EXPECT_EQ(read(folder / "hf/model.safetensors"), read(small / "model.safetensors"));
  const auto config = nlohmann::json::parse(read(folder / "hf/config.json"));
  EXPECT_EQ(config["architectures"][0], "GPT2LMHeadModel");
  EXPECT_EQ(config["n_head"], 4);
}

TEST_F(GptImport, SaysWhatItMadeAsJson) {
  const Reply reply = import("--dtype bf16 --json --out " + at("model.safetensors"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  const auto json = nlohmann::json::parse(reply.output);
  EXPECT_EQ(json["parameters"], 29216);
  EXPECT_EQ(json["vocab"], 101);
  EXPECT_EQ(json["dtype"], "bf16");
  EXPECT_EQ(json["bytes"], std::filesystem::file_size(folder / "model.safetensors"));
  EXPECT_TRUE(json["notes"].empty());
}

TEST_F(GptImport, ErrorsAreOneLineAndLeaveNothing) {
  const Reply none = run_ferrite("gpt import --from " + at("nowhere") + " --out " + at("out"));
  EXPECT_EQ(none.code, 2);
  expect_contains(none.output, "nowhere");
  const Reply dtype = import("--dtype f64 --out " + at("out"));
  EXPECT_EQ(dtype.code, 2);
  expect_contains(dtype.output, "--dtype");
  const Reply folder_missing = import("--out " + at("no/such/folder"));
  EXPECT_EQ(folder_missing.code, 2);
  expect_contains(folder_missing.output, "No such file or directory");
  // A full disk: the system refuses bytes in the middle of the file.
  const Reply full = import("--out " + at("out"), "trap '' XFSZ; ulimit -f 40;");
  EXPECT_EQ(full.code, 2);
  expect_contains(full.output, "cannot write it: File too large");
  EXPECT_EQ(folder.file_count(), 0u);
}

}  // namespace
}  // namespace ferrite::testing
