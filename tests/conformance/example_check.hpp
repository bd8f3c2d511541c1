// Every op of the list has an example (op_example), and on every backend it gives what Reference gives: one
// call of each dtype. Layouts, other shapes and gradients are for the cases, which coverage.hpp demands.
#pragma once

#include <gtest/gtest.h>

#include "ferrite/stacks/self_test.hpp"

namespace ferrite::conformance {

inline void check_example(AnyBackend& b, std::string_view op) {
  const SelfTest result = self_test(b, op);
  EXPECT_GT(result.calls, 0);
  for (const std::string& finding : result.findings) ADD_FAILURE() << finding;
}

}  // namespace ferrite::conformance
