// The dtypes that most tests of the GPU go through.
#pragma once

#include "ferrite/core/dtype.hpp"

namespace ferrite::testing {

inline constexpr DType floats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

}  // namespace ferrite::testing
