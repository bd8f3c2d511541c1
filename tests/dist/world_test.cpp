#include "ferrite/dist/world.hpp"

#include <cstdlib>
#include <map>
#include <optional>

#include "dist/collective_checks.hpp"
#include "ferrite/dist/nccl.hpp"

namespace ferrite::testing {
namespace {

using Variables = std::map<std::string, std::string>;

/// The environment of a launcher, and of no other, until it is destroyed.
class Environment {
 public:
  explicit Environment(const Variables& set) {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_SIZE",
          "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS",
          "WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE",
          "FERRITE_DIST_TIMEOUT"}) {
      const char* const value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST(World, AProgramStartedAloneIsAWorldOfOne) {
  const Environment alone(Variables{});
  EXPECT_EQ(dist::launch_from_environment().launcher, "");
  const auto group = dist::world();
  EXPECT_EQ(group->size(), 1);
  EXPECT_EQ(group->rank(), 0);
  check_views(*group);
}

TEST(World, LaunchersAreKnownByTheirVariables) {
  const auto expect = [](const Variables& variables, int rank, int size, int local_rank) {
    const Environment environment(variables);
    const dist::Launch launch = dist::launch_from_environment();
    EXPECT_EQ(launch.rank, rank);
    EXPECT_EQ(launch.size, size);
    EXPECT_EQ(launch.local_rank, local_rank);
    EXPECT_NE(launch.launcher, "");
  };
  expect({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
         3, 4, 1);
  expect({{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}, {"MPI_LOCALRANKID", "0"}, {"SLURM_LOCALID", "1"}}, 2, 4, 0);
  expect({{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}, {"SLURM_LOCALID", "1"}}, 2, 4, 1);
  expect({{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}, 5, 8, 1);
}

TEST(World, TorchrunSaysWhereTheFirstRankListens) {
  Variables torchrun{{"WORLD_SIZE", "4"},
                     {"RANK", "3"},
                     {"LOCAL_RANK", "1"},
                     {"MASTER_ADDR", "node7"},
                     {"MASTER_PORT", "29500"}};
  {
    const Environment environment(torchrun);
    const dist::Launch launch = dist::launch_from_environment();
    EXPECT_EQ(launch.launcher, "torchrun");
    EXPECT_EQ(launch.rank, 3);
    EXPECT_EQ(launch.size, 4);
    EXPECT_EQ(launch.local_rank, 1);
    EXPECT_EQ(launch.address, "node7:29500");
    EXPECT_THROW(dist::world(), dist::DistError) << "there is no MPI, and nothing else for CPUs";
  }
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // it listens there itself
  {
    const Environment environment(torchrun);
    EXPECT_EQ(dist::launch_from_environment().address, "node7:29501");
  }
  Variables by_slurm = torchrun;
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PMI_SIZE"}) by_slurm[name] = "2";
  by_slurm["PMI_RANK"] = by_slurm["PMIX_RANK"] = "1";
  {
    const Environment environment(by_slurm);  // srun torchrun ...
    EXPECT_EQ(dist::launch_from_environment().rank, 3);
  }
  torchrun.erase("MASTER_ADDR");
  const Environment environment(torchrun);
  EXPECT_THROW(dist::launch_from_environment(), dist::DistError);
}

TEST(World, AWorldOfOneNeedsNoMoreThanItsSize) {
  const Environment environment(Variables{{"WORLD_SIZE", "1"}});
  EXPECT_EQ(dist::launch_from_environment().launcher, "");
}

TEST(World, WithoutAGpuThereIsNoNcclGroupAndItSaysWhy) {
  if (dist::nccl_unavailable_reason().empty()) GTEST_SKIP() << "there is one";
  try {
    const dist::NcclGroup group(dist::Rendezvous{0, 1, "127.0.0.1:29511"}, 0);
    FAIL();
  } catch (const dist::DistError& error) {
    EXPECT_NE(std::string(error.what()).find(dist::nccl_unavailable_reason()), std::string::npos)
        << error.what();
  }
}

TEST(World, ProcessesThatWouldEachBeAloneAreRefused) {
  {
    const Environment srun(Variables{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}});
    EXPECT_THROW(dist::launch_from_environment(), dist::DistError);
  }
  {
    const Environment batch_script(Variables{{"SLURM_NTASKS", "4"}});
    EXPECT_EQ(dist::launch_from_environment().size, 1);
  }
  const Environment torchrun(Variables{{"WORLD_SIZE", "2"}});
  EXPECT_THROW(dist::world(), dist::DistError);
}

TEST(World, BadVariablesAreNamed) {
  const Environment environment(Variables{{"OMPI_COMM_WORLD_SIZE", "four"}, {"FERRITE_DIST_TIMEOUT", "-1"}});
  EXPECT_THROW(dist::launch_from_environment(), ValueError);
  EXPECT_THROW(dist::default_timeout(), ValueError);
  ::setenv("FERRITE_DIST_TIMEOUT", "1.5", 1);
  EXPECT_EQ(dist::default_timeout(), std::chrono::milliseconds(1500));
}

}  // namespace
}  // namespace ferrite::testing
