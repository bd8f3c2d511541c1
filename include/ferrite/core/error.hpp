// Every error the library throws. Message form: "[matmul] lhs [2, 3] and rhs [4, 5]: inner
// dimensions 3 and 4 differ" — the op, what was given, what is needed.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite {

class FERRITE_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message), message_(message) {}
  const char* what() const noexcept override { return message_.c_str(); }
  /// Replaces the op in the message's brackets: if a part of an op fails, the error names the op that was
  /// called.
  void rename(std::string_view op);

 private:
  std::string message_;
};

/// Shapes, ranks or axes that do not fit the op.
class FERRITE_API ShapeError : public Error {
 public:
  using Error::Error;
};

/// A dtype the op does not take.
class FERRITE_API DTypeError : public Error {
 public:
  using Error::Error;
};

/// A value outside its domain: an index out of range, a probability above 1, a negative step.
class FERRITE_API ValueError : public Error {
 public:
  using Error::Error;
};

/// Tensors of different devices or backend objects in one op, or a device that does not exist.
class FERRITE_API DeviceError : public Error {
 public:
  using Error::Error;
};

/// The allocator could not serve a request; the message says how much was asked for and how much is in use.
class FERRITE_API OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A gradient that cannot be or was not computed: no vjp, no graph, a leaf the loss does not reach.
class FERRITE_API GradientError : public Error {
 public:
  using Error::Error;
};

/// A backend failed inside an op (a library call, a kernel, a parity mismatch).
class FERRITE_API BackendError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be opened, read, written or renamed.
class FERRITE_API IoError : public Error {
 public:
  using Error::Error;
};

/// A file or text whose content breaks its format; names the file, the place and the rule.
class FERRITE_API ParseError : public Error {
 public:
  using Error::Error;
};

}  // namespace ferrite
