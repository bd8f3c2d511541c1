// The program as a whole: help, version, bad usage; `ferrite ops`, `ferrite devices` and `ferrite doctor`.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "cli/cli_test.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/isa.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/ops/all.hpp"

namespace ferrite::testing {
namespace {

TEST(Program, ExplainsItself) {
  const Reply help = run_ferrite("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* part : {"ops", "replay", "devices", "doctor", "tokenize", "bench",
                           "Exit codes: 0 success, 1 a difference was found, 2 bad usage"})
    expect_contains(help.output, part);
  for (const char* command : {"ops", "replay", "devices", "doctor", "priors"}) {
    const Reply run = run_ferrite(std::string(command) + " --help");
    EXPECT_EQ(run.code, 0);
    expect_contains(run.output, "Examples:\n  ");
    expect_contains(run.output, "--json");
  }
  EXPECT_EQ(run_ferrite("--version").code, 0);
}

TEST(Program, DoctorTestsEveryBackend) {
  const Reply run = run_ferrite("doctor --json");
  ASSERT_EQ(run.code, 0) << run.output;
  const auto report = nlohmann::json::parse(run.output);
  EXPECT_EQ(report["healthy"], true);
  std::set<std::string> tested;
  std::string openblas;
  for (const auto& check : report["checks"]) {
    EXPECT_NE(check["verdict"], "FAILED") << check.dump();
    EXPECT_FALSE(check["what"].get<std::string>().empty());
    EXPECT_TRUE(check["verdict"] == "ok" || !check["advice"].get<std::string>().empty()) << check.dump();
    if (check["name"] == "OpenBLAS") openblas = check["verdict"];
    tested.insert(check["name"]);
  }
  for (const char* name : {"test reference", "test cpu", "test lazy-cpu"})
    EXPECT_EQ(tested.count(name), 1u) << name;
  for (const char* name : {"NVIDIA driver", "nvcc"}) EXPECT_EQ(tested.count(name), 1u) << name;
  EXPECT_EQ(tested.count("test cpu-openblas"), openblas == "ok" ? 1u : 0u);
  EXPECT_EQ(tested.count("test cuda:0"), cuda_device_count() > 0 ? 1u : 0u);
  EXPECT_EQ(report["auto"], cuda_device_count() > 0 ? "cuda" : "cpu");
  const Reply looked = run_ferrite("doctor --no-tests");
  EXPECT_EQ(looked.code, 0);
  expect_contains(looked.output, "--backend auto is");
  EXPECT_EQ(looked.output.find("test cpu"), std::string::npos);
}

TEST(Program, RunsTheKernelsOfTheInstructionSetItIsAskedFor) {
  for (const Isa& isa : isas()) {
    const Reply run = run_ferrite("doctor --no-tests", "FERRITE_ISA=" + isa.name);
    EXPECT_EQ(run.code, isa.is_here ? 0 : 1) << run.output;
    if (isa.is_here)
      expect_contains(run.output, "ok       " + isa.name + ", ");
    else
      expect_contains(run.output,
                      "FERRITE_ISA=" + isa.name + ": this processor does not have it; use one of: ");
  }
  const Reply wrong = run_ferrite("doctor --no-tests", "FERRITE_ISA=altivec");
  EXPECT_EQ(wrong.code, 1);
  expect_contains(wrong.output, "FERRITE_ISA=altivec: the library has no kernels for that; use one of: ");
  expect_contains(wrong.output, "-> Unset the variable, or give it another value.");
}

TEST(Program, ExitsWith2OnBadUsageAndSaysWhatIsWrong) {
  EXPECT_EQ(run_ferrite("").code, 2);
  const Reply unknown = run_ferrite("paint");
  EXPECT_EQ(unknown.code, 2);
  expect_contains(unknown.output, "there is no command 'paint'");
  EXPECT_EQ(run_ferrite("ops --frobnicate").code, 2);
  const Reply backend = run_ferrite("ops --backend gpu");
  EXPECT_EQ(backend.code, 2);
  expect_contains(backend.output, "gpu not in {reference,cpu");
  EXPECT_EQ(run_ferrite("replay").code, 2);
}

TEST(Program, NeverWritesOverWhatItReads) {
  const ScratchFolder folder;
  const auto at = [&](const char* name) { return "'" + (folder / name).string() + "'"; };
  const std::string table = "a,y\n1,2\n2,3\n3,5\n";
  for (const char* name : {"t.csv", "u.csv"}) std::ofstream(folder / name) << table;
  std::filesystem::create_symlink(folder / "t.csv", folder / "link.csv");
  const auto refused = [](const std::string& command, const std::string& message) {
    const Reply run = run_ferrite(command);
    EXPECT_EQ(run.code, 2) << command;
    expect_contains(run.output, message);
  };
  const std::string same = "input and --out name the same file: give each its own";
  refused("tokenize fit " + at("t.csv") + " --out " + at("./t.csv"), "[tokenize fit] " + same);
  refused("tokenize fit " + at("t.csv") + " --out " + at("link.csv"), same);
  refused("tokenize fit " + at("*.csv") + " --out " + at("u.csv"), same);
  refused("gpt tokenizer train --text " + at("t.csv") + " --out " + at("t.csv"),
          "--text and --out name the same");
  std::filesystem::copy(folder / "t.csv", folder / "corpus");  // a file need not have a dot in its name
  refused("gpt tokenizer train --text " + at("corpus") + " --out " + at("corpus"),
          "--text and --out name the same");
  const std::string there = "cd '" + (folder / "").string() + "' &&";
  expect_contains(run_ferrite("gpt tokenizer train --text corpus --out corpus", there).output,
                  "--text and --out name the same");
  refused("bench page " + at("t.csv") + " --html " + at("t.csv"), "--html name the same file");
  refused("tokenize fit " + at("t.csv") + " --out ''", "[tokenize fit] --out is an empty path");
  refused("tokenize fit " + at("t.csv") + " --bins '' --out " + at("b.json"),
          "[tokenize fit] --bins is empty");
  for (const char* name : {"t.csv", "u.csv", "corpus"}) {
    std::ifstream file(folder / name);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), table) << name;
  }
  EXPECT_EQ(run_ferrite("tokenize fit " + at("t.csv") + " --drop y --out " + at("y")).code, 0);
  EXPECT_EQ(run_ferrite("tokenize fit " + at("t.csv") + " --drop y --out " + at("y")).code, 0) << "once more";
}

TEST(Program, DoesNotEndWellIfItsOutputIsLost) {
  EXPECT_EQ(run_ferrite("devices --json > /dev/full").code, 2);  // messages go there too
  EXPECT_EQ(run_ferrite("devices --json > /dev/null").code, 0);
}

TEST(Program, RefusesNumbersOutOfRange) {
  expect_contains(run_ferrite("bench compare a b --fail-below nan").output,
                  "'nan': give a number of 0 or more");
  expect_contains(run_ferrite("gpt generate --seed 18446744073709551616").output, "below 2^64");
  expect_contains(run_ferrite("gpt bench --batch 0").output, "'0': give a number above 0");
  expect_contains(run_ferrite("bench --threads 300").output, "'300': give a number from 1 to 256");
}

nlohmann::json entry(const nlohmann::json& listing, const std::string& op) {
  for (const auto& row : listing["ops"])
    if (row["op"] == op) return row;
  ADD_FAILURE() << "no row for " << op;
  return {};
}

TEST(OpsCommand, ListsEveryOpForEveryBackend) {
  const Reply run = run_ferrite("ops --json");
  ASSERT_EQ(run.code, 0);
  const auto listing = nlohmann::json::parse(run.output);
  std::set<std::string> listed;
  for (const auto& row : listing["ops"]) {
    listed.insert(row["op"]);
    for (const char* backend : {"reference", "cpu"}) EXPECT_FALSE(row["support"][backend].empty()) << row;
    for (const auto& [dtype, support] : row["support"]["reference"].items())
      EXPECT_NE(support, "missing") << row;
  }
  const auto expect_listed = [&]<class Op>() {
    EXPECT_TRUE(listed.contains(std::string(Op::type_name))) << Op::type_name;
  };
  op::Core::for_each(expect_listed);
  priors::Ops::for_each(expect_listed);
}

TEST(OpsCommand, ListsTheKernelsOfModels) {
  const auto support =
      entry(nlohmann::json::parse(run_ferrite("ops --json").output), "prior_datasets")["support"];
  EXPECT_EQ(support["reference"]["f32"], "composed");
  EXPECT_EQ(support["cpu"]["f32"], "forward only");
  EXPECT_EQ(support["cpu"].size(), 1u);  // tables are f32
}

TEST(OpsCommand, TakesTheBackendsThatItsHelpNames) {
  const std::string help = run_ferrite("ops --help").output;
  expect_contains(help, "reference,cpu");
  EXPECT_EQ(run_ferrite("ops --backend cuda").code, help.find("cuda") == std::string::npos ? 2 : 0);
}

TEST(OpsCommand, TellsKernelsViewsAndCompositionsApartByDtype) {
  const auto listing = nlohmann::json::parse(run_ferrite("ops --json").output);
  const auto softmax = entry(listing, "softmax")["support"];
  EXPECT_EQ(softmax["reference"]["f32"], "composed");
  EXPECT_EQ(softmax["cpu"]["f32"], "both ways");
  EXPECT_FALSE(softmax["cpu"].contains("i32"));  // softmax takes floats
  EXPECT_EQ(entry(listing, "softmax_backward")["support"]["cpu"]["f32"], "fused");
  EXPECT_EQ(entry(listing, "layer_norm_backward")["support"]["reference"].size(), 4u);
  const auto matmul = entry(listing, "matmul")["support"];
  EXPECT_EQ(matmul["cpu"]["i64"], "kernel");
  EXPECT_FALSE(matmul["cpu"].contains("bool"));
  EXPECT_EQ(entry(listing, "permute")["support"]["cpu"]["bool"], "view");
  EXPECT_EQ(entry(listing, "reduce")["functions"],
            (std::vector<std::string>{"sum", "prod", "max", "min", "any", "all"}));
  EXPECT_EQ(entry(listing, "triangle")["functions"], (std::vector<std::string>{"tril", "triu"}));
}

TEST(OpsCommand, PrintsATableOfTheChosenBackends) {
  const Reply both = run_ferrite("ops"), one = run_ferrite("ops --backend reference");
  EXPECT_EQ(run_ferrite("ops --backend 'reference, cpu'").code, 0);
  expect_contains(both.output.substr(0, both.output.find('\n')), "cpu");
  EXPECT_EQ(one.output.substr(0, one.output.find('\n')).find("cpu"), std::string::npos);
  const std::string table = std::regex_replace(one.output, std::regex(" +"), " ");
  expect_contains(table, "\nmatmul kernel number\n");
  expect_contains(table, "\nsoftmax composed float\n");
  expect_contains(table, "argmax argmin\n");
}

TEST(DevicesCommand, SaysWhatTheMachineHas) {
  const Reply run = run_ferrite("devices --json", "FERRITE_NUM_THREADS=3");
  ASSERT_EQ(run.code, 0);
  const auto devices = nlohmann::json::parse(run.output);
  EXPECT_EQ(devices["cpu"]["threads"], 3);
  EXPECT_FALSE(devices["cpu"]["name"].get<std::string>().empty());
  EXPECT_GT(devices["cpu"]["cores"], 0);
  EXPECT_GT(devices["cpu"]["memory_bytes"], 1 << 20);
  EXPECT_LE(devices["cpu"]["free_bytes"], devices["cpu"]["memory_bytes"]);
  EXPECT_EQ(devices["cuda"].size(), static_cast<std::size_t>(cuda_device_count()));
  EXPECT_EQ(devices.contains("cuda_unavailable"), cuda_device_count() == 0);
  const Reply text = run_ferrite("devices");
  expect_contains(text.output, "backend: cpu (");
  expect_contains(text.output, cuda_device_count() == 0 ? "cuda  " + cuda_unavailable_reason() : "cuda:0  ");
}

TEST(DevicesCommand, SaysWhoMultipliesMatrices) {
  const auto products = [](const std::string& choice) {
    return run_ferrite("devices", "FERRITE_PRODUCTS=" + choice);
  };
  const bool found =
      run_ferrite("doctor --no-tests").output.find("apt-get install libopenblas0") == std::string::npos;
  const std::string none = "products its own: no OpenBLAS found";
  expect_contains(products("openblas").output, found ? "products by OpenBLAS" : none);
  expect_contains(products("fastest").output, found ? "products by the faster of two" : none);
  EXPECT_EQ(products("reproducible").output.find("products"), std::string::npos);
  const Reply wrong = products("slowest");
  EXPECT_EQ(wrong.code, 2);
  expect_contains(wrong.output, "FERRITE_PRODUCTS=slowest: must be reproducible, openblas or fastest");
}

TEST(DevicesCommand, RefusesABadThreadCount) {
  const Reply run = run_ferrite("devices", "FERRITE_NUM_THREADS=many");
  EXPECT_EQ(run.code, 2);
  expect_contains(run.output, "FERRITE_NUM_THREADS");
}

TEST(Program, OptionsOfACommandMeanNothingBeforeItsSubcommand) {
  for (const auto& [line, option] : {std::pair("priors --preset realistic stats --datasets 4", "--preset"),
                                     std::pair("irsynth --format jsonl stats folder", "--format"),
                                     std::pair("bench --ops add page x --html y", "--ops")}) {
    const Reply reply = run_ferrite(line);
    EXPECT_EQ(reply.code, 2) << line << "\n" << reply.output;
    expect_contains(reply.output, std::string(option) + ": means nothing before '");
  }
}

}  // namespace
}  // namespace ferrite::testing
