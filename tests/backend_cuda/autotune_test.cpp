// The autotuner on the host: what it measures, what it remembers, and what it makes of bad files.
#include "backend_cuda/runtime/autotune.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/io_test.hpp"

namespace ferrite::cuda {
namespace {

using ferrite::testing::ScratchFolder;
using ferrite::testing::slurp;
using ferrite::testing::spill;

constexpr double never = std::numeric_limits<double>::infinity();
const std::vector<std::string> names = {"a", "b", "c"};

/// Candidates of given speeds that count how often they are measured.
struct Candidates {
  std::vector<double> seconds;
  int measured = 0;
  std::optional<std::size_t> choose(Autotuner& tuner, std::string_view problem = "problem",
                                    std::span<const std::string> candidates = names) {
    return tuner.choose(problem, candidates, [&](std::size_t i) {
      ++measured;
      return seconds[i];
    });
  }
};

struct AutotuneTest : ::testing::Test {
  ScratchFolder folder;
  const std::filesystem::path file = folder / "deep/er/autotune.jsonl";
  Autotuner tuner(std::string environment = "gpu 1") { return Autotuner(environment, {true, file}); }
};

TEST_F(AutotuneTest, TheFastestIsChosenOnce) {
  Candidates c{{3, 1, 2}};
  Autotuner own("gpu", {true, {}});
  EXPECT_EQ(c.choose(own), 1u);
  EXPECT_EQ(c.measured, 3);
  c.seconds = {1, 2, 3};
  EXPECT_EQ(c.choose(own), 1u);
  EXPECT_EQ(c.measured, 3);
  EXPECT_EQ(c.choose(own, "another problem"), 0u);
  EXPECT_EQ(c.measured, 6);
}

TEST_F(AutotuneTest, TheFirstStandsAgainstNoise) {
  Autotuner own("gpu", {true, {}});
  EXPECT_EQ((Candidates{{1.0, 0.99, 0.96}}.choose(own, "near")), 0u);
  EXPECT_EQ((Candidates{{1.0, 0.99, 0.94}}.choose(own, "far")), 2u);
}

TEST_F(AutotuneTest, CloseOnesAreMeasuredAgainInTurns) {
  Autotuner own("gpu", {true, {}});
  std::vector<std::size_t> order;
  const auto choice = own.choose("lucky once", names, [&](std::size_t i) {
    order.push_back(i);
    if (i == 2) return 9.0;
    return i == 1 && order.size() > 3 ? 1.1 : i == 1 ? 0.9 : 1.0;  // b was fast the first time alone
  });
  EXPECT_EQ(choice, 0u);
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0, 1, 0, 1, 0, 1, 0, 1}));
}

TEST_F(AutotuneTest, CandidatesThatCannotRunAreLeftOut) {
  Autotuner own("gpu", {true, {}});
  EXPECT_EQ((Candidates{{never, 2, never}}.choose(own, "one")), 1u);
  Candidates none{{never, never, never}};
  EXPECT_EQ(none.choose(own, "none"), std::nullopt);
  none.seconds[2] = 1;
  EXPECT_EQ(none.choose(own, "none"), 2u) << "a failure must not be remembered";
  EXPECT_EQ(none.choose(own, "empty", {}), std::nullopt);
}

TEST_F(AutotuneTest, ASingleCandidateIsNotMeasured) {
  Candidates c{{never}};
  Autotuner own = {"gpu", {true, {}}};
  EXPECT_EQ(c.choose(own, "problem", std::span(names).first(1)), 0u);
  EXPECT_EQ(c.measured, 0);
}

TEST_F(AutotuneTest, ThreadsMeasureOnce) {
  Autotuner own("gpu", {true, {}});
  std::atomic<int> measured = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const auto measure = [&](std::size_t i) {
        ++measured;
        return 3.0 - static_cast<double>(i);
      };
      EXPECT_EQ(own.choose("problem", names, measure), 2u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(measured, 3);
}

TEST_F(AutotuneTest, ACandidateMayChooseItself) {
  Autotuner own("gpu", {true, {}});
  const auto outer = own.choose("outer", names, [&](std::size_t i) {
    EXPECT_EQ((Candidates{{2, 1, 3}}.choose(own, "inner")), 1u);
    return i == 2 ? 1.0 : 2.0;
  });
  EXPECT_EQ(outer, 2u);
}

TEST_F(AutotuneTest, TheFileSparesTheNextProcessTheWork) {
  Candidates c{{3, 2, 1}};
  Autotuner first = tuner();
  EXPECT_EQ(c.choose(first), 2u);
  Autotuner second = tuner();
  EXPECT_EQ(c.choose(second), 2u);
  EXPECT_EQ(c.measured, 3);
  EXPECT_TRUE(second.warnings().empty());

  Autotuner other_gpu = tuner("gpu 2");
  EXPECT_EQ(c.choose(other_gpu), 2u);
  EXPECT_EQ(c.measured, 6);
  const std::vector<std::string> others = {"a", "b", "d"};
  EXPECT_EQ(c.choose(second, "problem", others), 2u) << "other candidates, other choice";
  EXPECT_EQ(c.measured, 9);
  Autotuner third = tuner();
  EXPECT_EQ(c.choose(third), 2u);
  EXPECT_EQ(c.choose(third, "problem", others), 2u);
  EXPECT_EQ(c.measured, 9) << "what one process adds, another must not lose";
}

TEST_F(AutotuneTest, TwoProcessesShareTheFile) {
  Autotuner first = tuner(), second = tuner();
  Candidates c{{3, 2, 1}};
  c.choose(first, "one");
  c.choose(second, "two");
  c.choose(first, "three");
  Autotuner later = tuner();
  c.measured = 0;
  for (const char* problem : {"one", "two", "three"}) EXPECT_EQ(c.choose(later, problem), 2u);
  EXPECT_EQ(c.measured, 0);
}

TEST_F(AutotuneTest, WithoutTimingTheFirstIsTaken) {
  Candidates c{{3, 2, 1}};
  Autotuner timing = tuner();
  c.choose(timing);
  Autotuner fixed("gpu 1", {false, file});
  EXPECT_EQ(c.choose(fixed), 0u);
  EXPECT_EQ(c.measured, 3);
  EXPECT_FALSE(fixed.compares());
  Autotuner third("gpu 1", {false, file, 5});
  EXPECT_EQ(c.choose(third), 2u) << "counted around";
  EXPECT_TRUE(third.compares());
}

TEST_F(AutotuneTest, RecallMeasuresNothing) {
  Autotuner first = tuner();
  EXPECT_EQ(first.recall("problem", names), std::nullopt);
  Candidates{{3, 2, 1}}.choose(first);
  EXPECT_EQ(first.recall("problem", names), 2u);
  EXPECT_EQ(tuner().recall("problem", names), 2u);
}

TEST_F(AutotuneTest, BadLinesAreLeftOutWithAWarning) {
  Candidates c{{3, 2, 1}};
  Autotuner writer = tuner();
  c.choose(writer, "kept");
  const std::string kept = slurp(file);
  ASSERT_TRUE(nlohmann::json::accept(kept));
  const std::vector<std::string> bad = {"\xff\xfe garbage",
                                        kept.substr(0, kept.size() / 2),  // cut off
                                        "[]",
                                        "null",
                                        R"({"environment": "gpu 1", "problem": "kept"})",
                                        R"({"environment": "gpu 1", "problem": "kept", "candidate": 3})"};
  for (const std::string& line : bad) {
    SCOPED_TRACE(line);
    spill(file, kept + line);
    Autotuner reader = tuner();
    c.measured = 0;
    EXPECT_EQ(c.choose(reader, "kept"), 2u);
    EXPECT_EQ(c.measured, 0);
    ASSERT_EQ(reader.warnings().size(), 1u);
    EXPECT_NE(reader.warnings()[0].find(file.string() + ": 1 lines"), std::string::npos)
        << reader.warnings()[0];
    EXPECT_EQ(c.choose(reader, "new"), 2u);
    EXPECT_EQ(c.measured, 3);
    Autotuner later = tuner();
    EXPECT_EQ(c.choose(later, "kept"), 2u);
    EXPECT_EQ(c.choose(later, "new"), 2u);
    EXPECT_EQ(c.measured, 3);
    EXPECT_TRUE(later.warnings().empty()) << "it was taken out";
  }
}

TEST_F(AutotuneTest, ALineBeginsAnewAfterOneThatWasCutOff) {
  Candidates c{{3, 2, 1}};
  Autotuner first = tuner(), second = tuner();
  c.choose(first, "one");
  c.choose(second, "two");  // both have read the file
  spill(file, slurp(file) + R"({"environ)");
  c.choose(first, "three");
  Autotuner later = tuner();
  c.measured = 0;
  for (const char* problem : {"one", "two", "three"}) EXPECT_EQ(c.choose(later, problem), 2u);
  EXPECT_EQ(c.measured, 0);
}

TEST_F(AutotuneTest, AChoiceMayBeTakenFromElsewhere) {
  Autotuner first = tuner();
  first.keep("problem", names, 1);
  EXPECT_EQ(first.recall("problem", names), 1u);
  EXPECT_EQ(tuner().recall("problem", names), 1u);
}

TEST_F(AutotuneTest, AnEmptyFileIsFine) {
  std::filesystem::create_directories(file.parent_path());
  spill(file, "");
  Autotuner reader = tuner();
  EXPECT_EQ((Candidates{{3, 2, 1}}.choose(reader)), 2u);
  EXPECT_TRUE(reader.warnings().empty());
}

TEST_F(AutotuneTest, AFileThatCannotBeWrittenIsGivenUp) {
  spill(folder / "file", "in the way");
  Autotuner own("gpu", {true, folder / "file" / "autotune.jsonl"});
  Candidates c{{3, 2, 1}};
  EXPECT_EQ(c.choose(own, "one"), 2u);
  EXPECT_EQ(c.choose(own, "two"), 2u);
  EXPECT_EQ(c.choose(own, "one"), 2u);
  EXPECT_EQ(c.measured, 6);
  EXPECT_EQ(own.warnings().size(), 1u);
}

TEST(AutotuneOptions, ComeFromTheEnvironment) {
  const auto with = [](const char* autotune, const char* own, const char* cache, const char* home) {
    const auto put = [](const char* name, const char* value) {
      value ? setenv(name, value, 1) : unsetenv(name);
    };
    put("FERRITE_AUTOTUNE", autotune);
    put("FERRITE_CACHE_DIR", own);
    put("XDG_CACHE_HOME", cache);
    put("HOME", home);
    return AutotuneOptions::from_environment();
  };
  std::vector<std::optional<std::string>> before;
  const std::vector<const char*> variables = {"FERRITE_AUTOTUNE", "FERRITE_CACHE_DIR", "XDG_CACHE_HOME",
                                              "HOME"};
  for (const char* name : variables)
    before.push_back(std::getenv(name) ? std::optional<std::string>(std::getenv(name)) : std::nullopt);
  EXPECT_EQ(with(nullptr, "/own", "/cache", "/home/me").file, "/own/autotune.jsonl");
  EXPECT_EQ(with(nullptr, nullptr, "/cache", "/home/me").file, "/cache/ferrite/autotune.jsonl");
  EXPECT_EQ(with(nullptr, "", nullptr, "/home/me").file, "/home/me/.cache/ferrite/autotune.jsonl");
  EXPECT_EQ(with(nullptr, nullptr, nullptr, nullptr).file, "");
  EXPECT_TRUE(with(nullptr, nullptr, nullptr, nullptr).timing);
  EXPECT_TRUE(with("1", nullptr, nullptr, nullptr).timing);
  EXPECT_FALSE(with("0", nullptr, nullptr, nullptr).timing);
  EXPECT_FALSE(with("0:7", nullptr, nullptr, nullptr).timing);
  EXPECT_EQ(with("0:7", nullptr, nullptr, nullptr).fixed, 7u);
  EXPECT_EQ(with("0:x", nullptr, nullptr, nullptr).fixed, 0u);
  for (std::size_t i = 0; i < variables.size(); ++i)
    before[i] ? setenv(variables[i], before[i]->c_str(), 1) : unsetenv(variables[i]);
}

}  // namespace
}  // namespace ferrite::cuda
