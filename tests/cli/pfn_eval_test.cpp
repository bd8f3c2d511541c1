// ferrite pfn eval as a user runs it, on small tables.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cli_test.hpp"

namespace ferrite::testing {
namespace {

struct PfnEvalCommand : ::testing::Test {
  ScratchFolder folder;

  std::string at(const std::string& name) const { return "'" + (folder / name).string() + "'"; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  nlohmann::json read_json(const std::string& name) const { return nlohmann::json::parse(read(name)); }
  Reply eval(const std::string& arguments) const { return run_ferrite("pfn eval " + arguments, no_weights); }

  /// 120 rows: `y` follows `signal`, with errors; `noise` and `colour` say nothing.
  void write_table() const {
    std::string text = "signal,noise,colour,y,amount\n";
    for (int i = 0; i < 120; ++i) {
      const double signal = std::sin(i * 12.9898) * 3, noise = std::sin(i * 78.233);
      const bool yes = signal + std::sin(i * 39.425) > 0;
      text += std::to_string(signal) + "," + (i % 10 == 3 ? "" : std::to_string(noise)) + "," +
              (i % 3 ? "red" : "blue") + "," + (yes ? "yes" : "no") + "," +
              std::to_string(5 * signal + noise) + "\n";
    }
    write("table.csv", text);
  }
  void expect_refused(const std::string& arguments, const std::string& part) const {
    const Reply reply = eval(arguments);
    EXPECT_EQ(reply.code, 2);
    expect_contains(reply.output, part);
  }

  const std::string no_weights = "FERRITE_PFN_WEIGHTS= FERRITE_SHARE=/nowhere";
};

TEST_F(PfnEvalCommand, ExplainsItselfWithExamples) {
  const Reply help = run_ferrite("pfn eval --help");
  EXPECT_EQ(help.code, 0);
  expect_contains(help.output, "Examples:\n  ferrite pfn eval");
  expect_contains(help.output, "importance of columns is measured too, by one member");
  expect_contains(run_ferrite("pfn --help").output, "ferrite pfn eval");
}

TEST_F(PfnEvalCommand, JsonHasTheNumbersThatArePrinted) {
  write_table();
  const Reply reply =
      eval(at("table.csv") + " --target y --drop amount --repeats 2 --json " + at("report.json"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output,
                  "table.csv: 120 rows, 4 columns (3 of numbers, 1 of texts), 12 missing cells");
  expect_contains(reply.output, "notice: the network is left out");
  expect_contains(reply.output, "ferrite pfn train --task classification");
  const nlohmann::json json = read_json("report.json");
  EXPECT_EQ(json["task"], "classification");
  EXPECT_EQ(json["missing"]["noise"], 12);
  ASSERT_EQ(json["models"].size(), 3u);
  for (const auto& model : json["models"]) {
    std::string line = model["name"];
    for (const char* metric : {"auc", "log_loss", "accuracy"}) {
      const auto& score = model["scores"][metric];
      std::array<char, 64> text;
      std::snprintf(text.data(), text.size(), "%.4f +- %.4f", score["mean"].get<double>(),
                    score["deviation"].get<double>());
      const std::size_t start = reply.output.find(line), end = reply.output.find('\n', start);
      ASSERT_NE(start, std::string::npos) << reply.output;
      expect_contains(reply.output.substr(start, end - start), text.data());
      EXPECT_EQ(score["folds"].size(), 5u);
    }
    std::int64_t rows = 0;
    for (const auto& count : model["confusion"]) rows += count.get<std::int64_t>();
    EXPECT_EQ(rows, 120);
  }
  const auto auc = [&](int model) { return json["models"][model]["scores"]["auc"]["mean"].get<double>(); };
  EXPECT_EQ(auc(0), 0.5);
  EXPECT_GT(auc(2), 0.9);  // logistic regression
  EXPECT_EQ(json["importance"][0]["column"], "signal");
  EXPECT_GT(json["importance"][0]["mean"].get<double>(), 0.2);
  EXPECT_EQ(json["importance"].size(), 3u);
}

TEST_F(PfnEvalCommand, PagesNeedNoNetworkAndShowEveryModel) {
  write_table();
  for (const char* target : {"y", "amount", "colour"}) {
    const Reply reply = eval(at("table.csv") + " --quiet --repeats 1 --folds 3 --target " +
                             std::string(target) + " --page " + at("page.html"));
    ASSERT_EQ(reply.code, 0) << reply.output;
    EXPECT_EQ(reply.output.find("notice"), std::string::npos);
    const std::string page = read("page.html");
    for (const char* part : {"<svg", "prefers-color-scheme: dark", "nearest neighbours",
                             "Columns that matter", "signal", "The table", "12 missing cells"})
      expect_contains(page, part);
    for (const char* part : {"http", "<script", "<link", "@import", "nan", "{{"})
      EXPECT_EQ(page.find(part), std::string::npos) << part;
    const bool is_amount = std::string(target) == "amount";
    expect_contains(page, is_amount ? "True minus predicted" : "Calibration");
    expect_contains(page, is_amount ? "ridge regression" : "true \\ predicted");
  }
}

TEST_F(PfnEvalCommand, NamesOfClassesAreTextOnThePage) {
  std::string text = "x,y\n";
  for (int i = 0; i < 40; ++i) text += std::to_string(std::sin(i)) + (i % 2 ? ",<b>&\n" : ",other\n");
  write("names.csv", text);
  ASSERT_EQ(eval(at("names.csv") + " --quiet --repeats 0 --target y --page " + at("page.html")).code, 0);
  EXPECT_EQ(read("page.html").find("<b>&"), std::string::npos);
  expect_contains(read("page.html"), "&lt;b&gt;&amp;");
}

TEST_F(PfnEvalCommand, TheNetworkIsEvaluatedBesideTheOthers) {
  write_table();
  for (const std::string task : {"classification", "regression"}) {
    const Reply trained = run_ferrite(
        "pfn train --backend cpu --layers 1 --dim 32 --hidden 32 --registers 2 --cells 500 --steps 2 "
        "--evaluate-batches 1 --quiet --task " +
        task + " --out " + at(task));
    ASSERT_EQ(trained.code, 0) << trained.output;
    const std::string options =
        " --backend cpu --members 2 --folds 3 --repeats 1 --context-rows 40 --memory 1 --weights " +
        at(task + "/step-00000002.safetensors") + " --json " + at("report.json");
    const std::string target = task == "classification" ? "y" : "amount";
    const Reply reply =
        eval(at("table.csv") + " --target " + target + options + " --page " + at("page.html"));
    ASSERT_EQ(reply.code, 0) << reply.output;
    expect_contains(reply.output, "\nnetwork ");
    EXPECT_EQ(reply.output.find("left out"), std::string::npos);
    expect_contains(reply.output, "notice: network: of 80 train rows, samples of 40 are read at a time");
    const nlohmann::json network = read_json("report.json")["models"][0];
    EXPECT_EQ(network["name"], "network");
    if (task == "regression") {
      expect_contains(reply.output, "coverage");
      EXPECT_GT(network["scores"]["coverage"]["mean"].get<double>(), 0.3);
      EXPECT_GT(network["mean_interval"].get<double>(), 0);
    }
    // Weights of one task are of no use for the other.
    expect_refused(at("table.csv") + " --target " + (task == "regression" ? "y" : "amount") + options, task);
  }
}

TEST_F(PfnEvalCommand, WeightsThatSomebodyNamedMustBeThere) {
  write_table();
  const Reply reply = run_ferrite("pfn eval " + at("table.csv") + " --target y",
                                  "FERRITE_PFN_WEIGHTS=" + at("none.safetensors"));
  EXPECT_EQ(reply.code, 2);
  expect_contains(reply.output, "FERRITE_PFN_WEIGHTS: ");
}

TEST_F(PfnEvalCommand, FilesAreNotOverwrittenByMistake) {
  write_table();
  const std::string before = read("table.csv");
  expect_refused(at("table.csv") + " --target y --json " + at("./table.csv"), "--json name the same file");
  expect_refused(at("table.csv") + " --target y --json " + at("x") + " --page " + at("x"),
                 "--json and --page name the same file");
  const Reply reply = eval(at("table.csv") + " --target y --page " + at("nowhere/page.html"));
  EXPECT_EQ(reply.code, 2);
  EXPECT_EQ(reply.output.find("majority"), std::string::npos) << reply.output;  // before the work
  EXPECT_EQ(read("table.csv"), before);
}

TEST_F(PfnEvalCommand, ClassesAreThoseThatPredictKnows) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 30; ++i)
    rows += std::to_string(i) + (i % 2 ? ",12345678901234567\n" : ",12345678901234568\n");
  write("long.csv", rows);
  const Reply reply = eval(at("long.csv") + " --target y");
  EXPECT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "2 classes");
}

TEST_F(PfnEvalCommand, NamesNeedNotBeUtf8) {
  write_table();
  std::filesystem::rename(folder / "table.csv", folder / "t\xff.csv");
  const Reply reply = eval(at("t\xff.csv") + " --target y --repeats 0 --quiet --json " + at("report.json"));
  ASSERT_EQ(reply.code, 0) << reply.output;
  EXPECT_EQ(read_json("report.json")["file"], "t\xef\xbf\xbd.csv");
}

TEST_F(PfnEvalCommand, NumbersOfAnyUnitAreScoredAlike) {
  std::string scores;
  for (const std::string unit : {"", "e-200", "e200", "e300"}) {
    std::string text = "x,y\n";
    for (int i = 0; i < 40; ++i)
      text +=
          std::to_string(std::sin(i)) + "," + std::to_string(3 * std::sin(i) + std::cos(5 * i)) + unit + "\n";
    write("units.csv", text);
    const Reply reply =
        eval(at("units.csv") + " --target y --quiet --json " + at("report.json") + " --repeats 0");
    ASSERT_EQ(reply.code, 0) << reply.output;
    std::string found;
    for (const auto& model : read_json("report.json")["models"]) {
      std::array<char, 64> text_of;
      std::snprintf(text_of.data(), text_of.size(), "%.4f ", model["scores"]["r2"]["mean"].get<double>());
      found += text_of.data();
    }
    if (unit.empty()) scores = found;
    EXPECT_EQ(found, scores) << unit;
    EXPECT_EQ(reply.output.find("nan"), std::string::npos) << reply.output;
  }
}

TEST_F(PfnEvalCommand, BadInputIsRefusedWithAdvice) {
  write_table();
  write("constant.csv", "x,y\n1,a\n2,a\n3,a\n");
  write("rare.csv", "x,y\n1,a\n2,a\n3,a\n4,a\n5,a\n6,b\n7,b\n8,b\n");
  write("noise.csv", std::string("\x89PNG\r\n\x1a\n\0\0\xff\xfe", 12));
  expect_refused(at("table.csv") + " --target price",
                 "target 'price': there is no such column; choose one of");
  expect_refused(at("constant.csv") + " --target y", "there is nothing to learn");
  expect_refused(at("rare.csv") + " --target y",
                 "class 'b' of target 'y' has 3 rows: 5 folds need one in each; ask for at most 3 folds");
  expect_refused(at("rare.csv") + " --target y --folds 9", "ask for at most 3 folds");
  expect_refused(at("table.csv") + " --target y --folds 1", "1 folds of 120 rows");
  expect_refused(at("table.csv") + " --target y --task regression", "regression needs numbers");
  expect_refused(at("nowhere.csv") + " --target y", "nowhere.csv");
  expect_refused(at("noise.csv") + " --target y", "noise.csv: is binary, no CSV file; save the table as CSV");
  expect_refused(at("table.csv") + " --target y --weights " + at("none.safetensors"), "none.safetensors");
  expect_refused(at("table.csv"), "--target");
  expect_refused(at("table.csv") + " --target y --members 0", "give a number from 1 to 1000");
  expect_refused(at("table.csv") + " --target y --memory 2e9", "[pfn eval] --memory 2000000000: must lie");
  expect_refused(at("table.csv") + " --target y --drop y", "--drop y: is the target");
  write("twice.csv", "x,x,y\n1,2,a\n2,1,b\n3,1,a\n4,1,b\n5,3,a\n6,2,b\n7,1,a\n8,1,b\n");
  expect_refused(at("twice.csv") + " --target y --folds 2", "--rename-duplicates");
  EXPECT_EQ(eval(at("twice.csv") + " --target y --folds 2 --rename-duplicates").code, 0);
  write("other.csv", "x;y\n1;a\n2;b\n3;a\n4;b\n5;a\n6;b\n");
  expect_refused(at("other.csv") + " --target y --folds 2", "--delimiter ';'");
  EXPECT_EQ(eval(at("other.csv") + " --target y --folds 2 --delimiter ';'").code, 0);
  expect_refused(at("other.csv") + " --target y --delimiter ';;'", "give one character, or \\t for a tab");
}

}  // namespace
}  // namespace ferrite::testing
