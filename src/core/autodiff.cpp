// The little state autodiff keeps outside its graphs: the node counter and the per-thread NoGrad depth.
#include "ferrite/autodiff/autodiff.hpp"

namespace ferrite {

namespace detail {
std::uint64_t next_node_order() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace detail

namespace {
thread_local int no_grad_depth = 0;
}

NoGrad::NoGrad() { ++no_grad_depth; }
NoGrad::~NoGrad() { --no_grad_depth; }
bool NoGrad::active() { return no_grad_depth > 0; }

}  // namespace ferrite
