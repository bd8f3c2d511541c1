// Lazy<Cuda>: what Lazy<Cpu> is held to.
#include "decorators/lazy_test.hpp"
#include "decorators/lazy_programs.hpp"

namespace ferrite::lazy_tests {

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, LazyTest, Cuda);

TEST(LazyCuda, RandomProgramsGiveTheSameBits) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  EXPECT_GT(expect_same_programs<Cuda>(1, 8, 60), 100);
}

}  // namespace ferrite::lazy_tests
