// Errors that name the layer they come from.
#pragma once

#include <string>

#include "ferrite/core/array.hpp"

namespace ferrite::detail {

/// Throws the error being handled anew, of the same type, with a line that names the layer and what it was
/// given. Errors that hold more than a message (KernelError) pass as they are.
[[noreturn]] FERRITE_API void rethrow_from_layer(const std::string& name, const Meta& input);

}  // namespace ferrite::detail
