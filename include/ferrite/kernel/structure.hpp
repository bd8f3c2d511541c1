// The structure of a kernel: what remains without names and, optionally, numbers. Kernels with equal forms
// differ only in those; hashes of the form find duplicates.
#pragma once

#include <string>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

enum class Literals : std::uint8_t { kept, erased };

/// A text that is the same on every machine and in every run. Variables, functions and structs appear by
/// their order of use; operands of commutative builtins are sorted; called functions follow the kernel.
/// Places, messages of assertions and enable_backward do not count.
FERRITE_API std::string structural_form(const Module& module, const Function& kernel, Literals literals);

/// Whether builtin(a, b) is builtin(b, a) for operands of these types: matrices and quaternions do not
/// commute.
FERRITE_API bool is_commutative(Builtin builtin, Type a, Type b);

}  // namespace ferrite::kernel
