// Tells ctest that tests were skipped for want of a GPU. Those that need none have run, and a failure of
// theirs counts.
#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const bool any_skipped = ::testing::UnitTest::GetInstance()->skipped_test_count() > 0;
  constexpr int skipped = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt
  return status == 0 && any_skipped && ferrite::cuda_device_count() == 0 ? skipped : status;
}
