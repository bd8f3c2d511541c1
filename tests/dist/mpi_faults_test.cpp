// Processes of which one dies, hangs or differs: the others end soon, and say why. ctest tells where mpirun
// is.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "ferrite/train/checkpoint.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

struct Outcome {
  std::string output;
  int status;
  double seconds;
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

class MpiFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("FERRITE_TEST_MPI") == nullptr) GTEST_SKIP() << "no mpirun, or not run by ctest";
  }
  static Outcome run(const std::string& fault) {
    const auto begin = std::chrono::steady_clock::now();
    FILE* const pipe =
        ::popen((std::string(std::getenv("FERRITE_TEST_MPI")) + " " + fault + " 2>&1").c_str(), "r");
    Outcome outcome{"", -1, 0};
    char text[4096];
    while (const std::size_t n = std::fread(text, 1, sizeof text, pipe)) outcome.output.append(text, n);
    outcome.status = WEXITSTATUS(::pclose(pipe));
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  }
  /// Its timeout is 2 s; the rest is the time to start and to end, on a busy machine.
  static constexpr double soon = 30;
};

TEST_F(MpiFaults, WithoutOneAllEndWell) {
  const Outcome outcome = run("none");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  // mpirun may warn of the network. What ferrite says has the name of a part in brackets.
  for (const char* ours : {"caught: ", "[dist]", "[mpi]", "terminate called"})
    EXPECT_FALSE(outcome.says(ours)) << outcome.output;
}

TEST_F(MpiFaults, ARankThatHangsIsNamed) {
  const Outcome outcome = run("hang");
  EXPECT_TRUE(outcome.says(
      "caught: [dist] rank 1 did not arrive within 2 s at all_reduce(sum) of f32[2, 3], which rank "))
      << outcome.output;
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(outcome.seconds, soon);
}

TEST_F(MpiFaults, ARankThatIsKilledEndsTheOthers) {
  const Outcome outcome = run("kill");
  EXPECT_NE(outcome.status, 0) << outcome.output;
  EXPECT_LT(outcome.seconds, soon);
}

TEST_F(MpiFaults, AKilledRankIsNamedWhereTheLauncherLetsTheOthersGoOn) {
  ::setenv("OMPI_MCA_orte_enable_recovery", "1", 1);
  const Outcome outcome = run("kill");
  ::unsetenv("OMPI_MCA_orte_enable_recovery");
  EXPECT_LT(outcome.seconds, soon);
  if (outcome.status == 128 + SIGKILL || outcome.status == SIGKILL)
    GTEST_SKIP() << "this launcher ends them itself";
  EXPECT_TRUE(outcome.says("caught: [dist] rank 1 did not arrive within 2 s")) << outcome.output;
}

TEST_F(MpiFaults, ARunWithAKilledRankGoesOnFromItsLastCheckpoint) {
  const ScratchFolder folder;
  const auto at = [&](const char* name) { return " '" + (folder / name).string() + "'"; };
  const auto weights = [&](const char* name) {
    return train::read_checkpoint(folder / name / "step-00000010.safetensors").model;
  };
  const Outcome whole = run("trainer" + at("whole"));
  ASSERT_EQ(whole.status, 0) << whole.output;
  const Outcome killed = run("kill_trainer" + at("run"));
  EXPECT_NE(killed.status, 0) << killed.output;
  EXPECT_LT(killed.seconds, soon);
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "step-00000008.safetensors"));
  const Outcome again = run("trainer" + at("run"));
  ASSERT_EQ(again.status, 0) << again.output;
  EXPECT_TRUE(again.says("from step 4")) << again.output;
  for (const auto& [name, tensor] : weights("run"))
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), weights("whole").at(name).bytes())) << name;
}

TEST_F(MpiFaults, ARankThatThrowsIsNamed) {
  const Outcome outcome = run("throw");
  EXPECT_TRUE(outcome.says("caught: rank 1 has read a bad file")) << outcome.output;
  EXPECT_TRUE(outcome.says("caught: [dist] rank 1 is gone")) << outcome.output;
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(outcome.seconds, soon);
}

TEST_F(MpiFaults, ARankThatThrowsInBackwardIsNamed) {
  const Outcome outcome = run("backward");
  EXPECT_TRUE(outcome.says("caught: rank 1 has no memory")) << outcome.output;
  EXPECT_TRUE(outcome.says("caught: [dist] rank 1 is gone")) << outcome.output;
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(outcome.seconds, soon);
}

TEST_F(MpiFaults, ARankThatExitsIsNamed) {
  const Outcome outcome = run("exit");
  EXPECT_TRUE(outcome.says("caught: [dist] rank 1 is gone")) << outcome.output;
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(outcome.seconds, soon);
}

TEST_F(MpiFaults, ARankThatDiffersIsNamed) {
  const Outcome outcome = run("shape");
  EXPECT_TRUE(outcome.says("ranks 0 and 2 all_reduce(sum) of f32[2, 3]; rank 1 all_reduce(sum) of f32[2, 4]"))
      << outcome.output;
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(outcome.seconds, soon);
}

}  // namespace
}  // namespace ferrite::testing
