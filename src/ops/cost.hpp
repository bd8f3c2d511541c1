// The cost of ops that read every input and write every output once.
#pragma once

#include "ferrite/ops/op.hpp"

namespace ferrite::op {

inline Cost cost_of(double flops, MetaSpan in, MetaSpan out) {
  Cost cost{flops, 0};
  for (const Meta& m : in) cost.bytes += static_cast<double>(m.bytes());
  for (const Meta& m : out) cost.bytes += static_cast<double>(m.bytes());
  return cost;
}

}  // namespace ferrite::op
