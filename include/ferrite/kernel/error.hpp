// KernelError: what is wrong in a kernel, and where. The message shows the place as compilers do:
//
//   [kernel] saxpy.py:6:19: '*' of float and int: types never mix silently, write float(n)
//       y[i] = x[i] * n
//                   ^
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ferrite/core/error.hpp"

namespace ferrite::kernel {

/// A place in a source text: line and column, both from 1; line 0 is nowhere (a kernel made by a program).
/// Columns count bytes.
struct Place {
  int line = 0, column = 0;
};

/// Decisions that Python makes when it launches a kernel: values for the parameters of a Python function
/// around kernels, {"make_gemm.tile_size", "16"}, and types for kernel parameters that are Any,
/// {"scale.values", "wp.vec3"}.
using Bindings = std::map<std::string, std::string, std::less<>>;

/// The text that places refer to, its name in messages, and the bindings that it needs.
struct Source {
  std::string file, text;
  Bindings bindings = {};
};

/// A text that is not a kernel, breaks a rule of the language, or failed when it ran.
class FERRITE_API KernelError : public Error {
 public:
  /// `source` may be null: the message then has no place.
  KernelError(const Source* source, Place place, std::string_view problem);

  Place place() const { return place_; }
  /// The message without the place and the source line.
  const std::string& problem() const { return problem_; }
  /// The struct, function or kernel with the error; empty if unknown.
  const std::string& definition() const { return definition_; }
  void set_definition(std::string name) { definition_ = std::move(name); }

 private:
  Place place_;
  std::string problem_, definition_;
};

}  // namespace ferrite::kernel
