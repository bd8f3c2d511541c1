// The passes of simplify.
#pragma once

#include "ferrite/kernel/simplify.hpp"

namespace ferrite::kernel {

/// simplify_constants.cpp: replaces variables by constants, from front to back.
void propagate_constants(Function& function);
/// simplify_dead.cpp: removes unneeded code, from back to front.
void remove_dead_code(const Module& module, Function& function);
void rename_loop_variables(Function& function);
/// All, until nothing changes.
void shorten(const Module& module, Function& function);
/// Renumbers the variables so that only parameters and used ones are left.
void remove_unused_variables(Function& function);

}  // namespace ferrite::kernel
