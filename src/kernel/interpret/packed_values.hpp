// Runs the interpreter on arguments in C layout.
#pragma once

#include "ferrite/kernel/interpreter.hpp"

namespace ferrite::kernel {

/// interpret() on arguments as emitted C++ takes them: a pointer to each. Arrays are changed in place.
void interpret_packed(const Module& module, const Function& kernel, std::span<const std::int64_t> dim,
                      void* const* arguments, const InterpretOptions& options);

}  // namespace ferrite::kernel
