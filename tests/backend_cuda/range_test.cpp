// The edges of dtypes on the GPU.
#include "ops/range.hpp"

namespace ferrite::range_tests {
using OnTheGpu = ::testing::Types<Cuda, Lazy<Cuda>>;
INSTANTIATE_TYPED_TEST_SUITE_P(OnTheGpu, Range, OnTheGpu);
}  // namespace ferrite::range_tests
