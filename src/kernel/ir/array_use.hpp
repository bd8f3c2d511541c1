// What a kernel does to the arrays it gets.
#pragma once

#include "ferrite/kernel/kernel.hpp"

namespace ferrite::kernel {

/// One for each parameter. Arrays inside structs count for the struct.
std::vector<ArrayUse> array_uses(const Module& module, const Function& kernel);

}  // namespace ferrite::kernel
