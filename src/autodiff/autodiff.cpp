// The little state autodiff keeps outside its graphs: the node counter, and per thread the depth of
// NoGrad and the innermost watch.
#include "ferrite/autodiff/autodiff.hpp"

#include <utility>

namespace ferrite {

namespace detail {
std::uint64_t next_node_order() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

void throw_released(const std::string& op) {
  throw GradientError("[" + op +
                      "] the graph was released by an earlier backward: run the forward again, all of it (a "
                      "tensor that is made once and used in every step has a history too), or do not ask for "
                      "BackwardConfig::with_release");
}
void throw_modified(const std::string& op) {
  throw GradientError("[" + op +
                      "] a tensor saved for backward was modified in place (by an optimiser step?) before "
                      "backward ran: call backward first, or run the forward again");
}
}  // namespace detail

namespace {
thread_local int no_grad_depth = 0;
thread_local detail::OpWatch* innermost_watch = nullptr;
}  // namespace

detail::OpWatch::OpWatch() : outer_(innermost_watch) { innermost_watch = this; }
detail::OpWatch::~OpWatch() { innermost_watch = outer_; }
detail::OpWatch* detail::OpWatch::active() { return innermost_watch; }

NoGrad::NoGrad() { ++no_grad_depth; }
NoGrad::~NoGrad() { --no_grad_depth; }
detail::Recording::Recording() : depth_(std::exchange(no_grad_depth, 0)) {}
detail::Recording::~Recording() { no_grad_depth = depth_; }
bool NoGrad::active() { return no_grad_depth > 0; }

}  // namespace ferrite
