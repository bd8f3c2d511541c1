// `ferrite kernel run --backend`: the kernel on tensors of a backend instead of in the interpreter.
#pragma once

#include <span>
#include <string>

#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/kernel.hpp"

namespace ferrite::cli {

/// Runs the kernel and puts the arrays, as it left them, in the place of its arguments. Returns where it ran
/// and, on a GPU, in which blocks. Throws ValueError for arguments that no tensor can hold.
std::string launch_on(const std::string& backend, const kernel::Kernel& kernel, const kernel::Grid& grid,
                      std::span<kernel::Value> arguments);

}  // namespace ferrite::cli
