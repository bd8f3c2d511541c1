// A quick check of a backend on this machine: an example of every op of the library, in every dtype that it
// takes, compared with Reference. `ferrite doctor` and the conformance suite use it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/stacks/any_backend.hpp"

namespace ferrite {

/// An input of the example of an op (op_example), with values that every op takes: positive numbers below 1
/// in rising order (edges of bins), and 0 or 1 for integers. Linear algebra needs matrices that are far from
/// singular: `is_matrix` asks for a dominant diagonal. `stream` makes inputs differ.
FERRITE_API HostTensor example_input(const Meta& meta, std::uint64_t stream, bool is_matrix);

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
