// RunMetrics: its lines, what a resumed run keeps of them, and the page.
#include "ferrite/train/metrics.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using Json = nlohmann::json;
using testing::expect_error;
using testing::points;
using testing::PointsRun;
using testing::ScratchFolder;
using testing::warm_cosine;

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<Json> lines_of(const std::filesystem::path& folder) {
  std::vector<Json> lines;
  std::ifstream in(folder / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::vector<std::int64_t> steps_of(const std::vector<Json>& lines) {
  std::vector<std::int64_t> steps;
  for (const Json& line : lines) steps.push_back(line["step"]);
  return steps;
}

TEST(RunMetrics, WriteALineForEveryReportAndEvaluation) {
  const ScratchFolder folder;
  RunMetrics metrics(folder / "run");
  PointsRun run("cpu", warm_cosine(6).with_report_every(2).with_evaluate_every(4));
  run.trainer.add_observer(metrics);
  run.trainer.validate_on(points(30, 3));
  run.trainer.fit();
  const auto lines = lines_of(folder / "run");
  EXPECT_EQ(steps_of(lines), (std::vector<std::int64_t>{2, 4, 4, 6, 6}));
  for (const char* name :
       {"loss", "learning_rate", "gradient_norm", "samples_per_second", "memory_bytes", "time"})
    EXPECT_GT(lines[0].at(name).get<double>(), 0) << name;
  EXPECT_EQ(lines[1].at("learning_rate"), optim::Schedule::cosine(0.05, 40).with_warmup(5).at(3));
  EXPECT_TRUE(lines[2].contains("validation_loss"));
  EXPECT_FALSE(lines[2].contains("loss"));
  const std::string page = text_of(folder / "run" / "metrics.html");
  EXPECT_EQ(page.find("http-equiv=\"refresh\""), std::string::npos);  // it has ended
  for (const char* part : {"<svg", "Loss", "Gradient norm", "Samples per second", "Memory", "Step 6 of 6"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("http://"), std::string::npos);
}

TEST(RunMetrics, AResumedRunGoesOnBelowTheLinesUpToItsStep) {
  const ScratchFolder folder;
  const auto config = warm_cosine(12).with_report_every(2).with_checkpoints(folder / "run", 4);
  {
    RunMetrics metrics(folder / "run");
    PointsRun run("cpu", config);
    run.trainer.add_observer(metrics);
    run.trainer.advance(7);  // the checkpoint is of step 4
  }
  EXPECT_EQ(steps_of(lines_of(folder / "run")), (std::vector<std::int64_t>{2, 4, 6, 7}));
  const Json kept = lines_of(folder / "run")[1];
  std::ofstream(folder / "run" / "metrics.jsonl", std::ios::app)
      << "{\"step\": 3, \"lo";  // cut off by a crash
  RunMetrics metrics(folder / "run");
  PointsRun run("cpu", config);
  ASSERT_TRUE(run.trainer.resume_latest());
  run.trainer.add_observer(metrics);  // after the resumption: it is told all the same
  run.trainer.fit();
  const auto lines = lines_of(folder / "run");
  EXPECT_EQ(steps_of(lines), (std::vector<std::int64_t>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(lines[1], kept);
  // A run that begins has nothing to do with the lines of an earlier one.
  RunMetrics anew(folder / "run");
  PointsRun other("cpu", warm_cosine(2));
  other.trainer.add_observer(anew);
  other.trainer.fit();
  EXPECT_EQ(steps_of(lines_of(folder / "run")), (std::vector<std::int64_t>{2}));
}

TEST(RunMetrics, SpeedsOfTextsAreInTokens) {
  const ScratchFolder folder;
  RunMetrics metrics(folder / "run", MetricsConfig{}.with_tokens_per_sample(16).with_title("a < b"));
  Progress progress{10, 20, 0, 2.5, 0.1, 100, 3};
  progress.memory_bytes = 12345;
  metrics.on_progress(progress);
  const Json line = lines_of(folder / "run")[0];
  EXPECT_EQ(line.at("tokens_per_second"), 1600);
  EXPECT_EQ(line.at("memory_bytes"), 12345);
  EXPECT_FALSE(line.contains("samples_per_second"));
  EXPECT_FALSE(line.contains("gradient_norm"));  // the optimiser has none
  const std::string page = text_of(folder / "run" / "metrics.html");
  EXPECT_NE(page.find("<h1>a &lt; b</h1>"), std::string::npos);
  EXPECT_NE(page.find("http-equiv=\"refresh\""), std::string::npos);
}

TEST(RunMetrics, AFolderThatCannotBeMadeIsNamed) {
  const ScratchFolder folder;
  std::ofstream(folder / "file") << "x";
  expect_error<IoError>([&] { RunMetrics(folder / "file" / "run"); }, {"[metrics]", "file/run"});
}

}  // namespace
}  // namespace ferrite::train
