// The list of compile times, one for the process.
#include "backend_cuda/runtime/compile_times.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "backend_cuda/runtime/stopwatch.hpp"
#include "ferrite/decorators/profiled.hpp"

namespace ferrite::cuda {
namespace {

thread_local CompileScope* innermost = nullptr;

struct List {
  struct Sum {
    std::int64_t count = 0, nanoseconds = 0;
  };
  std::mutex mutex;
  std::unordered_map<std::string, Sum> sums;

  static List& instance() {
    static List* const list = new List;  // static objects may compile while they are destroyed
    return *list;
  }
};

std::int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CompileScope::CompileScope(std::string what)
    : what_(std::move(what)), outer_(std::exchange(innermost, this)), start_(now()) {}

CompileScope::~CompileScope() {
  innermost = outer_;
  const std::int64_t all = now() - start_;
  if (outer_) outer_->inside_ += all;
  try {
    List& list = List::instance();
    const std::lock_guard guard(list.mutex);
    List::Sum& sum = list.sums[std::move(what_)];
    ++sum.count;
    sum.nanoseconds += all - inside_;
  } catch (const std::bad_alloc&) {  // a line of a report is lost
  }
  restart_stopwatch();
}

std::vector<CompileTime> compile_times() {
  List& list = List::instance();
  std::vector<CompileTime> times;
  const std::lock_guard guard(list.mutex);
  for (const auto& [what, sum] : list.sums)
    times.push_back({what, sum.count, 1e-9 * static_cast<double>(sum.nanoseconds)});
  std::sort(times.begin(), times.end(),
            [](const CompileTime& a, const CompileTime& b) { return a.seconds > b.seconds; });
  return times;
}

}  // namespace ferrite::cuda
