// From text to IR and back: the Warp dialect of Python. docs/kernels.md describes the language.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// The structs, functions and kernels of a Python file; everything else in it (imports, host code) is passed
/// over, but for constants: assignments at the top level and in functions around kernels. `file` stands for
/// the text in messages. Throws KernelError at the first thing that is wrong, ValueError for a binding that
/// is no value or meets no parameter.
FERRITE_API Module parse(std::string_view source, std::string_view file = "kernel.py",
                         const Bindings& bindings = {});

/// The same for the sake of one kernel: what is wrong elsewhere, in definitions that it does not use, is no
/// error. An empty name stands for the only kernel, and everything must be right. Throws ValueError if there
/// is no such kernel.
FERRITE_API Module parse_for(std::string_view kernel, std::string_view source,
                             std::string_view file = "kernel.py", const Bindings& bindings = {});

/// The same without stopping: definitions with errors, and those that need them, are left out.
struct Parsed {
  Module module;
  std::vector<KernelError> errors;  // at most one per definition, in the order of the text
  std::map<std::string, std::string>
      causes;  // of what was left out: the definition that it needs and that is wrong
};
FERRITE_API Parsed parse_all(std::string_view source, std::string_view file = "kernel.py",
                             const Bindings& bindings = {});

/// Python that Warp accepts (but for ferrite's extensions), and parse(print(m)) == m for every module that
/// comes from parse.
FERRITE_API std::string print(const Module& module);
FERRITE_API std::string print(const Module& module, const Expr& expression, const Function& inside);

}  // namespace ferrite::kernel
