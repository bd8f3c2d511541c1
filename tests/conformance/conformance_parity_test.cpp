// The suite under the parity decorator: every op, forward and backward, is checked once more op by op.
#include "suite.hpp"

namespace {
const bool registered = ferrite::conformance::register_suite<ferrite::CpuParity>("Parity");
}
