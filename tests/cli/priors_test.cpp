// `ferrite priors` as a user runs it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cli_test.hpp"
#include "ferrite/io/npz.hpp"

namespace ferrite::testing {
namespace {

TEST(PriorsCommand, makes_datasets_and_prints_statistics) {
  const Reply run = run_ferrite(
      "priors --family tree_scm --datasets 20 --rows 64 --features 3:5 --classes 2 --seed 3 --json");
  ASSERT_EQ(run.code, 0) << run.output;
  const auto json = nlohmann::json::parse(run.output);
  EXPECT_EQ(json["datasets"], 20);
  EXPECT_EQ(json["rows"]["max"], 64);
  EXPECT_LE(json["features"]["max"], 5);
  EXPECT_EQ(json["classes"]["max"], 2);
  EXPECT_EQ(json["families"]["tree_scm"], 20);
  int rejected = 0;
  for (const auto& [name, count] : json["rejected"].items()) rejected += count.get<int>();
  EXPECT_EQ(json["attempts"], 20 + rejected);
  const Reply table = run_ferrite("priors --datasets 4 --rows 64 --classes 2:4 --backend reference");
  EXPECT_EQ(table.code, 0) << table.output;
  expect_contains(table.output, "unlearnable");
  expect_contains(table.output, "datasets/s on reference");
}

TEST(PriorsCommand, writes_one_file_or_a_folder_that_it_resumes) {
  const ScratchFolder folder;
  const std::string options = "priors --family gp --datasets 10 --rows 40 --features 4 --classes 2:3 ";
  ASSERT_EQ(run_ferrite(options + "--out " + (folder / "sets.npz").string()).code, 0);
  const NamedTensors file = read_npz(folder / "sets.npz");
  EXPECT_EQ(file.find("x")->second.shape(), (Shape{10, 40, 4}));
  const std::string sharded = options + "--shard-size 4 --out " + (folder / "shards").string();
  ASSERT_EQ(run_ferrite(sharded).code, 0);
  std::filesystem::remove(folder / "shards/shard-00001.safetensors");
  EXPECT_EQ(run_ferrite(sharded).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "shards/shard-00001.safetensors"));
  const Reply other = run_ferrite(sharded + " --seed 9");
  EXPECT_EQ(other.code, 2);
  expect_contains(other.output, "holds another run");
}

TEST(PriorsCommand, describes_a_dataset_as_json_dot_and_html) {
  const ScratchFolder folder;
  const Reply json = run_ferrite("priors --family graph --rows 64 --classes 2 --describe 5");
  EXPECT_EQ(nlohmann::json::parse(json.output)["dataset"], 5);
  expect_contains(run_ferrite("priors --family graph --rows 64 --classes 2 --describe 5 --as dot").output,
                  "digraph dataset {");
  const auto page = folder / "dataset.html";
  EXPECT_EQ(
      run_ferrite("priors --family graph --rows 64 --classes 2 --describe 5 --as html --out " + page.string())
          .code,
      0);
  EXPECT_GT(std::filesystem::file_size(page), 1000u);
}

TEST(PriorsCommand, refuses_bad_input_and_names_it) {
  const ScratchFolder folder;
  const auto refused = [](const std::string& options, const std::string& message) {
    const Reply run = run_ferrite("priors " + options);
    EXPECT_EQ(run.code, 2) << run.output;
    expect_contains(run.output, message);
  };
  refused("--family forest", "family is \"forest\": needs one of formula");
  refused("--family 'gp\", \"task\": \"regression'", R"(family is "gp\", \"task)");
  refused("--rows 0", "rows.min 0: must be from 4");
  refused("--rows few", "--rows few: needs a number");
  refused("--features 500", "features.min 500");
  refused("--classes 10 --rows 12", "post.classes.max 10 with rows.min 12");
  refused("--classes 4 --rows 30", "post.classes.min 4 with rows.min 30 and train_share 0.1 to 0.9");
  refused("--datasets 0", "must be at least one");
  std::ofstream(folder / "bad.json") << R"({"mlp_scm": {"noise_std": {"min": -1}}})";
  refused("--config " + (folder / "bad.json").string(), "mlp_scm.noise_std.min -1");
  refused("--config " + (folder / "absent.json").string(), "cannot be read");
  refused("--datasets 4 --rows 64 --classes 2 --out /proc/nowhere", "/proc/nowhere");
}

}  // namespace
}  // namespace ferrite::testing
