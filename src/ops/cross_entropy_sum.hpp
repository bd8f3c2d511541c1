// Shared by the kernels that give one loss for many rows: ops on arrays, and the last step.
#pragma once

#include <initializer_list>

#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite::op {

/// Runs an op that has one result.
template <class B, class Op>
void run_one(B& b, const Op& op, std::initializer_list<const Array*> in, Array out) {
  run(b, op, Ins(in.begin(), in.size()), Outs(&out, 1));
}

/// result [] = the sum of the losses, divided by `counted` if that is defined.
template <class B>
void add_up(B& b, const Array& losses, const Array& counted, const Array& result) {
  const Array total = counted.defined() ? b.allocate(result.meta()) : result;
  run_one(b, Reduce{ReduceFn::sum, {0}}, {&losses}, total);
  if (counted.defined()) run_one(b, Binary{BinaryFn::div}, {&total, &counted}, result);
}

}  // namespace ferrite::op
