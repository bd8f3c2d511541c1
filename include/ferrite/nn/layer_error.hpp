// Errors that name the layer they come from.
#pragma once

#include <string>

#include "ferrite/core/array.hpp"

namespace ferrite::detail {

/// Rethrows the error being handled, with the same type and an extra line that names the layer and its input.
/// Errors that hold more than a message (KernelError) pass unchanged.
[[noreturn]] FERRITE_API void rethrow_from_layer(const std::string& name, const Meta& input);

}  // namespace ferrite::detail
