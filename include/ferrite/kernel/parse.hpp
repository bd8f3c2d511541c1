// From text to IR and back: the Warp dialect of Python. docs/kernels.md describes the language.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// The structs, functions and kernels of a Python file. Everything else in it (imports, host code) is
/// skipped, except for constants: assignments at the top level and in functions around kernels. `file` stands
/// for the text in messages. Throws KernelError at the first error, ValueError for a binding that is not a
/// value or matches no parameter.
FERRITE_API Module parse(std::string_view source, std::string_view file = "kernel.py",
                         const Bindings& bindings = {});

/// The same for one kernel: errors in definitions that it does not use are ignored. An empty name means the
/// only kernel, and then everything must be correct. Throws ValueError if there is no such kernel.
FERRITE_API Module parse_for(std::string_view kernel, std::string_view source,
                             std::string_view file = "kernel.py", const Bindings& bindings = {});

/// The same without stopping: definitions with errors, and those that need them, are left out.
struct Parsed {
  Module module;
  std::vector<KernelError> errors;  // at most one per definition, in the order of the text
  std::map<std::string, std::string>
      causes;  // for each definition left out: the wrong definition that it needs
};
FERRITE_API Parsed parse_all(std::string_view source, std::string_view file = "kernel.py",
                             const Bindings& bindings = {});

/// Python that Warp accepts (except for ferrite's extensions). parse(print(m)) == m for every module that
/// comes from parse.
FERRITE_API std::string print(const Module& module);
FERRITE_API std::string print(const Module& module, const Expr& expression, const Function& inside);

}  // namespace ferrite::kernel
