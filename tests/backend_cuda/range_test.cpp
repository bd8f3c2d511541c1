// The edges of dtypes on the GPU.
#include "ops/range.hpp"

namespace ferrite::range_tests {
INSTANTIATE_TEST_SUITE_P(OnTheGpu, Range, ::testing::Values("cuda", "lazy-cuda"));
}  // namespace ferrite::range_tests
