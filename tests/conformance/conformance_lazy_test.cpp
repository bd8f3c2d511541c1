// Fused ops against Reference, and op by op against the backend below.
#include "suite.hpp"

namespace {
const bool registered = ferrite::conformance::register_suite<ferrite::Lazy<ferrite::Cpu>>("Lazy");
const bool compared = ferrite::conformance::register_suite<ferrite::LazyParity>("LazyParity");
}  // namespace
