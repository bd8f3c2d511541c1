// Where a tensor in host memory holds NaN or inf.
#pragma once

#include "ferrite/io/host_tensor.hpp"

namespace ferrite {

/// The index of the first NaN, or of the first NaN or inf, in row-major order; -1 if there is none.
FERRITE_API std::int64_t first_nan(const HostTensor& tensor);
FERRITE_API std::int64_t first_non_finite(const HostTensor& tensor);

}  // namespace ferrite
