// Linear algebra on the backends of the CPU.
#include "ops/linear_algebra.hpp"

namespace ferrite::linear_algebra_tests {
INSTANTIATE_TEST_SUITE_P(OnTheCpu, LinearAlgebra,
                         ::testing::Values("reference", "cpu", "lazy-cpu", "parity"));
}  // namespace ferrite::linear_algebra_tests
