// The edges of dtypes on the backends of the CPU.
#include "ops/range.hpp"

namespace ferrite::range_tests {
INSTANTIATE_TEST_SUITE_P(OnTheCpu, Range, ::testing::Values("reference", "cpu", "lazy-cpu", "parity"));
}  // namespace ferrite::range_tests
