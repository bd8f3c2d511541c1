// A quick check of a backend on this machine: an example of every op of the library, in every dtype that it
// takes, compared with Reference. `ferrite doctor` and the conformance suite use it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/stacks/any_backend.hpp"

namespace ferrite {

/// What a self-test saw.
struct SelfTest {
  int ops = 0;                        // that were tested
  int calls = 0;                      // one for each op and dtype
  std::vector<std::string> findings;  // "softmax bf16, output 0: 0.5 instead of 0.25 at 3", or an error
  bool passed() const { return findings.empty(); }
};

/// Results are compared as Parity compares them. With the name of an op it tests that one alone; a name that
/// no op has is a ValueError. Errors of the backend are findings, they are not thrown.
FERRITE_API SelfTest self_test(AnyBackend& backend, std::string_view only_op = {});

}  // namespace ferrite
