// Run by mpirun with any number of processes; alone they are skipped.
#include "ferrite/dist/mpi.hpp"

#include "dist/backend_checks.hpp"
#include "dist/collective_checks.hpp"
#include "dist/data_parallel_checks.hpp"
#include "ferrite/dist/world.hpp"

namespace ferrite::testing {
namespace {

using dist::MpiGroup;
using dist::Reduction;

/// One group for all tests of the process.
class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!dist::mpi_unavailable_reason().empty()) GTEST_SKIP() << dist::mpi_unavailable_reason();
    if (dist::launch_from_environment().launcher.empty()) GTEST_SKIP() << "not started by mpirun";
    if (!group_) group_ = dist::world();
    ASSERT_NE(dynamic_cast<MpiGroup*>(group_.get()), nullptr);
  }
  static inline std::unique_ptr<dist::Group> group_;
};

TEST_F(Mpi, RanksAreThoseOfTheLauncher) {
  EXPECT_EQ(group_->rank(), dist::launch_from_environment().rank);
  EXPECT_EQ(group_->describe(),
            "MPI, rank " + std::to_string(group_->rank()) + " of " + std::to_string(group_->size()));
}
TEST_F(Mpi, CollectivesOfAllDtypesAreWhatTheyAreDefinedAs) { check_all_dtypes(*group_); }
TEST_F(Mpi, LargeArraysGoInSlices) { check_large(*group_); }
TEST_F(Mpi, MaxAndMinKeepNanAndTheFirstZero) { check_nan_and_zeros(*group_); }
TEST_F(Mpi, ViewsAndScalars) { check_views(*group_); }
TEST_F(Mpi, PartsOfTheWholeInPlace) { check_parts_in_place(*group_); }
TEST_F(Mpi, EveryBackend) { check_backends(*group_); }
TEST_F(Mpi, WrongArgumentsAreNamedBeforeAnythingIsSent) { check_arguments(*group_); }
TEST_F(Mpi, MismatchesAreNamedOnAllRanks) { check_mismatches(*group_); }

TEST_F(Mpi, TrainedWeightsAreThoseOfOneProcessBitForBit) { check_data_parallel(*group_); }
TEST_F(Mpi, TrainingOnEveryBackend) { check_data_parallel_backends(*group_); }

TEST_F(Mpi, MpisOwnReductionIsExactForIntegersAndCloseForFloats) {
  MpiGroup theirs(Reduction::mpi);
  EXPECT_EQ(theirs.is_reproducible(), theirs.size() <= 2);
  check_reductions<std::int32_t>(theirs, 1037);
  check_reductions<std::uint8_t>(theirs, 1037);
  check_reductions<BFloat16>(theirs, 1037);
  if (theirs.is_reproducible()) check_reductions<float>(theirs, 100'003);
  const auto sums =
      dist::all_reduce(theirs, elements<double>(theirs.rank(), {1037}), ReduceOp::mean).to_vector<double>();
  for (std::int64_t i = 0; i < 1037; ++i)
    EXPECT_NEAR(sums[static_cast<std::size_t>(i)], reduced<double>(ReduceOp::mean, theirs.size(), i), 1e-9);
}

}  // namespace
}  // namespace ferrite::testing
