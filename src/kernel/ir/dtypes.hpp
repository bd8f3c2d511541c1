// Between the dtypes of tensors and the types of kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "ferrite/core/dtype.hpp"
#include "ferrite/kernel/type.hpp"

namespace ferrite::kernel {

ScalarType scalar_type(DType dtype);

/// The axes that an element adds to those of its array: none, one of 3 for vec3, two of 2 for mat22.
std::vector<std::int64_t> component_axes(Type element);

}  // namespace ferrite::kernel
