// The edges of dtypes on the backends of the CPU.
#include "ops/range.hpp"

namespace ferrite::range_tests {
using OnTheCpu = ::testing::Types<Reference, Cpu, Lazy<Cpu>, CpuParity>;
INSTANTIATE_TYPED_TEST_SUITE_P(OnTheCpu, Range, OnTheCpu);
}  // namespace ferrite::range_tests
