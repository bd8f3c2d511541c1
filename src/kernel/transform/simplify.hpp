// The passes of simplify.
#pragma once

#include "ferrite/kernel/simplify.hpp"

namespace ferrite::kernel {

/// simplify_constants.cpp: puts constants in place of variables, from the front to the back.
void propagate_constants(Function& function);
/// simplify_dead.cpp: removes what nobody needs, from the back to the front.
void remove_dead_code(const Module& module, Function& function);
void rename_loop_variables(Function& function);
/// All, until nothing changes.
void shorten(const Module& module, Function& function);
/// Renumbers the variables so that only parameters and used ones are left.
void remove_unused_variables(Function& function);

}  // namespace ferrite::kernel
