// Time spent on preparation: starting CUDA, loading libraries, building plans and choosing among them.
// Reports list it apart from the ops, whose first call would otherwise include it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite {
struct CompileTime;
}

namespace ferrite::cuda {

/// Counts the time from here to the end of the scope, minus the time of scopes inside it. A stopwatch that
/// runs on this thread restarts at the end. Any thread; the times of all GPUs go into one list.
class FERRITE_API CompileScope {
 public:
  /// Scopes of the same text are one line of the list.
  explicit CompileScope(std::string what);
  ~CompileScope();
  CompileScope(const CompileScope&) = delete;
  CompileScope& operator=(const CompileScope&) = delete;

 private:
  std::string what_;
  CompileScope* outer_;
  std::int64_t start_, inside_ = 0;  // nanoseconds
};

/// Of this process so far, slowest first.
FERRITE_API std::vector<CompileTime> compile_times();

}  // namespace ferrite::cuda
