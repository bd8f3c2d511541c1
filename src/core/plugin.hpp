// Plugin: a part of the library that needs software which not every machine has. It is a module beside the
// library, loaded when it is first used: linked, that software would make every program start later, and none
// would start without it.
#pragma once

#include <string>

namespace ferrite {

/// Never closed: what it made may be in use.
class Plugin {
 public:
  /// Whether its symbols are also those of libraries that are loaded later.
  enum class Symbols { own, global };

  /// Loads lib`name`-VERSION.so and finds the function `function` in it. `software` is what it brings, as in
  /// "Apache Arrow, which reads Parquet", for reasons. Does not throw.
  Plugin(const std::string& name, const char* function, const std::string& software,
         Symbols symbols = Symbols::own);

  /// Null if there is none, and reason() says why and what to do.
  void* function() const { return function_; }
  const std::string& reason() const { return reason_; }

 private:
  void* function_ = nullptr;
  std::string reason_;
};

}  // namespace ferrite
