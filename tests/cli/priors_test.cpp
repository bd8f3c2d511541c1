// `ferrite priors` as a user runs it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cli_test.hpp"
#include "ferrite/io/npz.hpp"

namespace ferrite::testing {
namespace {

TEST(PriorsCommand, MakesDatasetsAndPrintsStatistics) {
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

TEST(PriorsCommand, WritesOneFileOrAFolderThatItResumes) {
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

TEST(PriorsCommand, TakesTheKindOfAFileFromItsName) {
  const ScratchFolder folder;
  const auto write = [&](const std::string& name) {
    return run_ferrite("priors --family gp --datasets 10 --rows 40 --features 4 --classes 2:3 --out " +
                       (folder / name).string());
  };
  ASSERT_EQ(write("SETS.NPZ").code, 0);
  EXPECT_EQ(read_npz(folder / "SETS.NPZ").find("x")->second.shape(), (Shape{10, 40, 4}));
  ASSERT_EQ(write("sets.SafeTensors").code, 0);
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "sets.SafeTensors"));
  for (const char* name : {"sets.npy", "sets.CSV"}) {
    const Reply refused = write(name);
    EXPECT_EQ(refused.code, 2);
    expect_contains(refused.output, std::string(name) + ": datasets are written as .npz or .safetensors");
    EXPECT_FALSE(std::filesystem::exists(folder / name));
  }
  EXPECT_EQ(write("sets.v1").code, 0);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "sets.v1"));
}

TEST(PriorsCommand, FindsAFileThatCannotBeWrittenBeforeItMakesDatasets) {
  const ScratchFolder folder;
  const Reply run =
      run_ferrite("priors --family gp --rows 512 --features 4 --classes 2 --datasets 20000 --out " +
                      (folder / "none/sets.npz").string(),
                  "ulimit -t 5;");  // seconds; the datasets take longer
  EXPECT_EQ(run.code, 2);
  expect_contains(run.output, "none/sets.npz: cannot create");
}

TEST(PriorsCommand, SaysWhichDatasetsAreOfAnEarlierRun) {
  const ScratchFolder folder;
  const std::string run =
      "priors --family gp --datasets 10 --rows 40 --features 4 --classes 2:3 "
      "--shard-size 4 --out " +
      (folder / "shards").string();
  expect_contains(run_ferrite(run).output, "datasets                10\n");
  std::filesystem::remove(folder / "shards/shard-00002.safetensors");
  const Reply some = run_ferrite(run);
  expect_contains(some.output, "datasets                10 (8 of an earlier run)\n");
  expect_contains(some.output, "family gp               2 (1.000)");
  const Reply all = run_ferrite(run);
  expect_contains(all.output, "datasets                10 (10 of an earlier run)\n");
  for (const char* made_up : {"datasets/s", "categorical", "missing", "attempts"})
    EXPECT_EQ(all.output.find(made_up), std::string::npos) << made_up << " is in\n" << all.output;
  const auto json = nlohmann::json::parse(run_ferrite(run + " --json").output);
  EXPECT_EQ(json["datasets"], 10);
  EXPECT_EQ(json["of_an_earlier_run"], 10);
  for (const char* nothing : {"rows", "classes", "categorical_share", "missing_share"})
    EXPECT_TRUE(json[nothing].is_null()) << nothing;
}

TEST(PriorsCommand, DescribesADatasetAsJsonDotAndHtml) {
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

TEST(PriorsCommand, StatsOfAPresetStandBesideRealTablesAndACsv) {
  const ScratchFolder folder;
  const auto csv = folder / "own.csv";
  {
    std::ofstream out(csv);
    out << "age,income,town,paid\n";
    for (int i = 0; i < 40; ++i)
      out << 20 + i << "," << (i % 10 == 9 ? "" : std::to_string(1000 + 50 * i)) << ","
          << (i % 4 < 2 ? "Bath" : "Ely") << "," << (i % 5 == 0 ? "no" : "yes") << "\n";
  }
  const std::string options = "priors stats --preset realistic --datasets 12 --rows 64 --classes 2:3 ";
  const Reply run = run_ferrite(options + "--json --csv " + csv.string() + " --target paid");
  ASSERT_EQ(run.code, 0) << run.output;
  const auto json = nlohmann::json::parse(run.output);
  EXPECT_EQ(json["datasets"], 12);
  EXPECT_GE(json["real_tables"], 20);
  EXPECT_EQ(json["csv"]["rows"], 40);
  EXPECT_EQ(json["csv"]["features"], 3);
  EXPECT_NEAR(json["csv"]["categorical"].get<double>(), 1.0 / 3, 1e-9);
  EXPECT_NEAR(json["csv"]["correlation"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(json["csv"]["missing"].get<double>(), 4.0 / 120, 1e-9);
  EXPECT_NEAR(json["csv"]["largest_class"].get<double>(), 0.8, 1e-9);
  EXPECT_EQ(json["csv"]["classes"], 2);
  EXPECT_GT(json["prior"]["categorical"]["mean"], 0.1);
  EXPECT_NEAR(json["real"]["correlation"]["median"].get<double>(), 0.23, 0.01);
  const Reply table = run_ferrite(options + "--csv " + csv.string());
  EXPECT_EQ(table.code, 0) << table.output;
  expect_contains(table.output, "12 drawn datasets");
  expect_contains(table.output, "name the column of classes with --target");
  EXPECT_EQ(run_ferrite("priors stats --datasets 4 --rows 64 --task regression").code, 0);
  const auto refused = [&](const std::string& more, const std::string& message) {
    const Reply reply = run_ferrite("priors stats " + more);
    EXPECT_EQ(reply.code, 2) << reply.output;
    expect_contains(reply.output, message);
  };
  refused("--csv " + csv.string() + " --target wealth", "has the columns age, income, town, paid");
  refused("--csv " + (folder / "absent.csv").string(), "absent.csv");
  refused("--preset real", "there are default and realistic");
  refused("--target paid", "--target requires --csv");
}

TEST(PriorsCommand, RefusesBadInputAndNamesIt) {
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
