// `ferrite bench` as a user runs it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend_cpu/linalg/lapack.hpp"
#include "cli/cli_test.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file as --out writes it, with add/f32/1K on cpu, and another row.
OrderedJson report(double seconds, const std::string& other_row, const std::string& cpu = "A processor") {
  const auto row = [](const std::string& op, double time) {
    return OrderedJson{
        {"name", op + "/f32/1K"}, {"op", op},
        {"dtype", "f32"},         {"size", "1K"},
        {"bound", "bytes"},       {"flops", 1e3},
        {"bytes", 12e3},          {"results", {{"cpu", {{"seconds", time}, {"min_seconds", time / 2}}}}}};
  };
  return {{"schema_version", 1},
          {"ferrite", {{"version", "0.1.0"}, {"commit", "unknown"}}},
          {"date", "2026-01-01T00:00:00Z"},
          {"hardware", {{"cpu", {{"name", cpu}, {"cores", 2}}}, {"gpus", OrderedJson::array()}}},
          {"settings", {{"threads", 2}}},
          {"columns", {{{"name", "cpu"}, {"kind", "backend"}, {"what", "the CPU"}}}},
          {"rows", {row("add", seconds), row(other_row, 1e-6)}},
          {"notes", OrderedJson::array()}};
}

std::string saved(const std::filesystem::path& path, const OrderedJson& json) {
  std::ofstream(path) << json.dump();
  return path.string() + " ";
}

TEST(BenchCommand, ExplainsItself) {
  for (const char* command : {"bench --help", "bench compare --help", "bench page --help"}) {
    const Reply run = run_ferrite(command);
    EXPECT_EQ(run.code, 0);
    expect_contains(run.output, "Examples:\n  ferrite bench");
  }
}

TEST(BenchCommand, ListsItsRows) {
  const Reply all = run_ferrite("bench --list");
  ASSERT_EQ(all.code, 0) << all.output;
  for (const char* row : {"copy/f32/100M", "gelu/f32/1K", "cross_entropy/f32/4096x1024", "matmul/f32/4096",
                          "conv2d/f32/32x64x128x128", "batch_norm/f32/32x64x32x32", "train_mlp/f32/batch128"})
    expect_contains(all.output, row);
  EXPECT_EQ(all.output.find("bf16"), std::string::npos);
  const Reply some =
      run_ferrite("bench --list --dtypes f64,bf16 --ops add,matmul --sizes 1M,512 --filter bf");
  EXPECT_EQ(std::count(some.output.begin(), some.output.end(), '\n'), 3) << some.output;
  expect_contains(some.output, "add/bf16/1M");
  expect_contains(some.output, "matmul/bf16/512");
}

TEST(BenchCommand, RunsAnExampleOfEveryOp) {
  EXPECT_EQ(run_ferrite("bench --list").output.find("example"), std::string::npos);
  const ScratchFolder folder;
  const std::filesystem::path out = folder / "examples.json";
  const Reply run =
      run_ferrite("bench -q --sizes example --backends cpu --iterations 1 --warmup 0 --out " + out.string());
  ASSERT_EQ(run.code, 0) << run.output;
  const OrderedJson rows = OrderedJson::parse(text_of(out)).at("rows");
  EXPECT_GE(rows.size(), 70u);  // ops that take f32
  for (const OrderedJson& row : rows)
    EXPECT_GT(row.at("results").at("cpu").at("seconds").get<double>(), 0) << row.at("name");
}

TEST(BenchCommand, RunsTheBackendsThatAreHere) {
  const ScratchFolder folder;
  const std::filesystem::path out = folder / "run.json";
  const Reply run = run_ferrite("bench -q --ops add --sizes 1K --iterations 1 --out " + out.string());
  ASSERT_EQ(run.code, 0) << run.output;
  std::vector<std::string> columns, expected{"reference", "cpu"};
  const OrderedJson report = OrderedJson::parse(text_of(out));
  for (const OrderedJson& column : report.at("columns")) columns.push_back(column.at("name"));
  if (cpu::has_lapack()) expected.push_back("cpu-openblas");
  if (cuda_device_count() > 0) expected.push_back("cuda");
  EXPECT_EQ(columns, expected);
}

TEST(BenchCommand, WritesFiguresAndAPage) {
  const ScratchFolder folder;
  const std::string json_file = (folder / "run.json").string(), html_file = (folder / "run.html").string();
  const Reply run = run_ferrite(
      "bench --ops add,matmul,train_cnn --sizes 1K,10K,128,2048,batch64 --backends reference,cpu --peers "
      "eigen "
      "--iterations 2 --max-seconds 0.02 --threads 1 --out " +
      json_file + " --html " + html_file);
  ASSERT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "reference: ");
  expect_contains(run.output, "GFLOP/s");

  const OrderedJson json = OrderedJson::parse(text_of(json_file));
  EXPECT_EQ(json["schema_version"], 1);
  const OrderedJson clock = json["hardware"]["cpu"]["clocks"]["current_mhz"];
  EXPECT_TRUE(clock == "unknown" || clock > 100) << clock;
  EXPECT_EQ(json["settings"]["threads"], 1);
  EXPECT_FALSE(json["ferrite"]["commit"].get<std::string>().empty());
  EXPECT_EQ(json["columns"].size(), 3u);
  for (const OrderedJson& row : json["rows"]) {
    const OrderedJson& cpu = row["results"]["cpu"];
    EXPECT_GT(cpu["seconds"], 0) << row;
    EXPECT_LE(cpu["min_seconds"], cpu["seconds"]);
    EXPECT_LE(cpu["iterations"], 2);
    EXPECT_GT(row["flops"], 0);
    const bool is_large = row["name"] == "matmul/f32/2048", is_step = row["op"] == "train_cnn";
    EXPECT_EQ(row["results"]["reference"].contains("seconds"), !is_large) << row;
    EXPECT_EQ(row["results"]["eigen"].contains("seconds"), !is_step) << row;
    EXPECT_EQ(cpu.contains("error"), !is_step);
    EXPECT_LT(cpu.value("error", 0.0), 1e-5);
  }
  const std::string page = text_of(html_file);
  for (const char* part : {"Speed-up over cpu", "Speed-up over reference", "matmul/f32/2048", "<svg"})
    expect_contains(page, part);
  for (const char* part : {"{{", "http://", "https://", "nan"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  ASSERT_EQ(run_ferrite("bench page " + json_file + " --html " + (folder / "again.html").string()).code, 0);
  EXPECT_EQ(text_of(folder / "again.html"), page);
}

TEST(BenchCommand, LeavesNothingBehindAfterCtrlC) {
  const ScratchFolder folder;
  const Reply stopped = run_ferrite(
      "bench --out '" + (folder / "b.json").string() + "' --html '" + (folder / "b.html").string() + "'",
      "timeout --preserve-status -s INT 1");
  EXPECT_EQ(stopped.code, 130) << stopped.output;  // as shells count a SIGINT
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(BenchCommand, FailsIfAnErrorIsTooLarge) {
  const std::string row = "bench --ops sigmoid --sizes 1K --backends cpu --iterations 1 ";
  EXPECT_EQ(run_ferrite(row).code, 0);
  const Reply run = run_ferrite(row + "--max-error 1e-12");
  EXPECT_EQ(run.code, 1);
  expect_contains(run.output, "! sigmoid/f32/1K cpu: error ");
}

TEST(BenchCommand, NotesWhatIsMissing) {
  const Reply run = run_ferrite(
      "bench --ops add --sizes 1K --backends cpu,cuda:200 --peers numpy --python no-such-python --iterations "
      "1");
  EXPECT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "note: cuda:200: ");
  expect_contains(run.output, "note: numpy: [bench] cannot start no-such-python");
}

/// A program that says what a Python with peers.py says, whatever it is asked.
std::string python_that_answers(const std::filesystem::path& path, const std::string& reply) {
  std::ofstream(path) << "#!/bin/sh\necho '{\"what\": \"a peer\"}'\nwhile read row; do echo '" << reply
                      << "'; done\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

TEST(BenchCommand, TakesTheFiguresOfAPeer) {
  const ScratchFolder folder;
  const std::string row = "bench --ops add --sizes 1K --backends cpu --iterations 1 --peers torch --python ";
  const Reply good = run_ferrite(
      row + python_that_answers(folder / "good",
                                R"({"seconds": 2, "min_seconds": 1, "iterations": 1, "calls": 1})"));
  EXPECT_EQ(good.code, 0) << good.output;
  expect_contains(good.output, "2.00 s");
  const Reply bad = run_ferrite(row + python_that_answers(folder / "bad", "hello") + " --verbose");
  EXPECT_EQ(bad.code, 0) << bad.output;
  expect_contains(bad.output, "add/f32/1K torch: answered: hello");
}

TEST(BenchCommand, RunsNumpyWhereItIsInstalled) {
  if (std::system("python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "python3 has no NumPy";
  const ScratchFolder folder;
  const std::string file = (folder / "run.json").string();
  const Reply run = run_ferrite(
      "bench --sizes 1K,128,4096x1024,32x64x32x32 --backends cpu --peers numpy --iterations 1 "
      "--max-seconds 0.01 --out " +
      file);
  ASSERT_EQ(run.code, 0) << run.output;
  for (const OrderedJson& row : OrderedJson::parse(text_of(file))["rows"]) {
    EXPECT_GT(row["results"]["numpy"].value("seconds", 0.0), 0) << row;
    EXPECT_LT(row["results"]["numpy"].value("error", 1.0), 1e-5) << row;
  }
}

TEST(BenchCommand, RefusesNamesThatDoNotExist) {
  const auto expect_refused = [](const std::string& options, const std::string& why) {
    const Reply run = run_ferrite("bench " + options);
    EXPECT_EQ(run.code, 2);
    expect_contains(run.output, why);
  };
  expect_refused("--backends cpu,gpu",
                 "'gpu': must be one of cpu, cpu-openblas, cpu-fastest, cuda, reference");
  expect_refused("--ops ad", "'ad' is the op of no row; they are copy, add");
  expect_refused("--sizes 3K", "'3K' is the size of no row; they are 1K");
  expect_refused("--dtypes i32", "they are f32, f64, f16, bf16");
  expect_refused("--peers jax", "'jax' is not a peer; they are eigen, numpy, torch");
  expect_refused("--filter '('", "is not a regular expression");
  expect_refused("--filter nothing", "`ferrite bench --list` shows all rows");
  expect_refused("--ops add --out /no/such/folder/run.json", "/no/such/folder");
  expect_refused("compare no.json no.json", "cannot read no.json");
}

TEST(BenchCompare, PassesAndFailsByTheWorstRow) {
  const ScratchFolder folder;
  const std::string old_file = saved(folder / "old.json", report(1e-6, "mul"));
  const std::string slower = saved(folder / "slower.json", report(1.1e-6, "mul"));
  const Reply same = run_ferrite("bench compare " + old_file + old_file);
  EXPECT_EQ(same.code, 0);
  expect_contains(same.output, "all: geometric mean 1.000, 0 of 2 below 0.95");
  const Reply worse = run_ferrite("bench compare " + old_file + slower);
  EXPECT_EQ(worse.code, 1);
  expect_contains(worse.output, "0.909  slower");
  EXPECT_EQ(run_ferrite("bench compare " + old_file + slower + "--fail-below 0.9 --by min").code, 0);
}

TEST(BenchCompare, ListsWhatOnlyOneFileHasAndWarnsAboutOtherHardware) {
  const ScratchFolder folder;
  const std::string one = saved(folder / "one.json", report(1e-6, "mul"));
  const std::string other = saved(folder / "other.json", report(1e-6, "relu", "Another"));
  const Reply run = run_ferrite("bench compare " + one + other + "--allow-missing");
  EXPECT_EQ(run.code, 0);
  expect_contains(run.output, "only before: mul/f32/1K cpu");
  expect_contains(run.output, "only after: relu/f32/1K cpu");
  expect_contains(run.output, "warning: different CPU: \"A processor\" before, \"Another\" after");
}

TEST(BenchCompare, FailsWithoutARowOrABackendOfTheEarlierRun) {
  const ScratchFolder folder;
  const OrderedJson without = report(1e-6, "mul");
  OrderedJson with = without;
  with["columns"].push_back({{"name", "cuda"}, {"kind", "backend"}, {"what", "a GPU"}});
  for (OrderedJson& row : with["rows"]) row["results"]["cuda"] = row["results"]["cpu"];
  const std::string full = saved(folder / "full.json", with), part = saved(folder / "part.json", without);
  const Reply gone = run_ferrite("bench compare " + full + part);
  EXPECT_EQ(gone.code, 1) << gone.output;
  expect_contains(gone.output, "only before: add/f32/1K cuda");
  expect_contains(gone.output, "2 times are missing after: --allow-missing passes without them");
  EXPECT_EQ(run_ferrite("bench compare " + full + part + "--allow-missing").code, 0);
  EXPECT_EQ(run_ferrite("bench compare " + part + full).code, 0);  // more rows than before are no loss
  OrderedJson shorter = without;
  shorter["rows"].erase(shorter["rows"].size() - 1);
  const std::string one_row = saved(folder / "one_row.json", shorter);
  EXPECT_EQ(run_ferrite("bench compare " + part + one_row).code, 1);
}

TEST(BenchCompare, FailsWhereAllTimesAreGone) {
  const ScratchFolder folder;
  OrderedJson gone = report(1e-6, "mul");
  for (OrderedJson& row : gone["rows"]) row["results"]["cpu"] = {{"note", "no GPU"}};
  const std::string before = saved(folder / "before.json", report(1e-6, "mul")),
                    after = saved(folder / "after.json", gone);
  const Reply run = run_ferrite("bench compare " + before + after);
  EXPECT_EQ(run.code, 1) << run.output;
  expect_contains(run.output, "only before: mul/f32/1K cpu");
  expect_contains(run.output, "2 times are missing after");
  const Reply nothing = run_ferrite("bench compare " + before + after + "--allow-missing");
  EXPECT_EQ(nothing.code, 2) << nothing.output;  // else it would pass without a comparison
  expect_contains(nothing.output, "after.json have no time of a row and backend in common: give two runs");
}

TEST(BenchCompare, NamesTheTimeThatIsNone) {
  const ScratchFolder folder;
  const std::string file = saved(folder / "zero.json", report(0, "mul"));
  const Reply run = run_ferrite("bench compare " + file + file);
  EXPECT_EQ(run.code, 2) << run.output;
  expect_contains(run.output, "zero.json, add/f32/1K on cpu: the time is 0 s (min 0 s), but must be above 0");
}

TEST(BenchCompare, RefusesOtherFiles) {
  const ScratchFolder folder;
  OrderedJson newer = report(1e-6, "mul");
  newer["schema_version"] = 2;
  const std::string files[] = {saved(folder / "newer.json", newer),
                               saved(folder / "list.json", OrderedJson::array())};
  const Reply version = run_ferrite("bench compare " + files[0] + files[0]);
  EXPECT_EQ(version.code, 2);
  expect_contains(version.output, "has schema_version 2, this ferrite reads 1");
  const Reply list = run_ferrite("bench compare " + files[1] + files[1]);
  EXPECT_EQ(list.code, 2);
  expect_contains(list.output, "is not a file of `ferrite bench --out`");
}

}  // namespace
}  // namespace ferrite::testing
