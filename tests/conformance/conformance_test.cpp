// The suite on every backend of the CPU. A new backend is one more line.
#include "suite.hpp"

namespace ferrite::conformance {
namespace {

const bool registered = register_coverage() && register_suite("Reference", "reference") &&
                        register_suite("Cpu", "cpu") && register_suite("CpuOpenBlas", "cpu-openblas") &&
                        register_suite("CpuFastest", "cpu-fastest", Bits::may_differ) &&
                        register_suite("Parity", "parity") && register_suite("Lazy", "lazy-cpu") &&
                        register_suite("LazyParity", "lazy-parity");

}  // namespace
}  // namespace ferrite::conformance
