// Registers the whole suite for a backend by its name (AnyBackend): compiled once, for all of them.
#pragma once

#include <functional>
#include <string>

#include "case.hpp"  // its lists must be there before a static object registers

namespace ferrite::conformance {

/// A test made of a closure. What is not a letter or a digit in the name becomes _.
void add_test(const std::string& suite, std::string name, std::function<void()> body);

/// Whether the same call gives the same bits again.
enum class Bits { same, may_differ };

/// Forward values, clone-invariance (of backends with the same bits) and gradients of every case, and an
/// example of every op of the list, on the backend of that name. Tests are called Forward/`suite`.softmax and
/// so on.
bool register_suite(const std::string& suite, const std::string& backend, Bits bits = Bits::same);

/// One test, of the list of cases itself: every op of op::Core and of priors::Ops has a case, and one with a
/// gradient if it has a vjp (coverage.hpp).
bool register_coverage();

}  // namespace ferrite::conformance
