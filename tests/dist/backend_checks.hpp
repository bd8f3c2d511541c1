// Collectives on tensors of backends that keep more than memory: pending ops, shadows, gradients.
#pragma once

#include <gtest/gtest.h>

#include "ferrite/dist/collectives.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::testing {

inline void check_backends(dist::Group& group) {
  for (const char* name : {"cpu", "reference", "lazy-cpu", "parity"}) {
    Autodiff<AnyBackend> b(name);
    const auto x = full(b, {3}, group.rank() + 1.0) * 2;
    const auto before = x + 1;  // what is recorded reads the old elements
    dist::all_reduce_in_place(group, x);
    const double total = group.size() * (group.size() + 1.0);
    EXPECT_EQ(x.to_vector<double>()[2], total) << name;
    EXPECT_EQ(before.to_vector<double>()[2], 2 * group.rank() + 3.0) << name;
    const auto y = dist::all_reduce(group, x * 0.5 + 1, dist::ReduceOp::mean) + 1;
    EXPECT_EQ(y.to_vector<double>()[0], total / 2 + 2) << name;
  }
}

}  // namespace ferrite::testing
