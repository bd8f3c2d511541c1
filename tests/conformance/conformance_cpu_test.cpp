// Cpu against Reference.
#include "suite.hpp"

namespace {
const bool registered = ferrite::conformance::register_suite<ferrite::Cpu>("Cpu");
}
