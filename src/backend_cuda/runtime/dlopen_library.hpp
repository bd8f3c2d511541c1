// A shared library that is loaded when its first function is called, and functions that forward to it.
#pragma once

#include <string>

namespace ferrite::cuda {

class DlopenLibrary {
 public:
  /// Looks where the system's loader looks, and where the library was at build time.
  explicit DlopenLibrary(std::string file);
  /// Throws BackendError if the library or the function is missing.
  void* find(const char* name) const;

 private:
  std::string file_, reason_;
  void* handle_ = nullptr;  // never closed: its objects live as long as the process
};

}  // namespace ferrite::cuda

/// Defines a function that the library's header declares, hidden inside ferrite. `library` is a function of
/// ferrite::cuda that returns a DlopenLibrary.
#define FERRITE_FORWARD(library, Result, name, parameters, arguments)                                     \
  Result name parameters {                                                                                \
    static const auto function = reinterpret_cast<decltype(&name)>(ferrite::cuda::library().find(#name)); \
    return function arguments;                                                                            \
  }
