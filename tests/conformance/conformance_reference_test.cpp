// Reference against itself: f64 truth against every dtype and layout, and its gradients.
#include "suite.hpp"

namespace {
const bool registered = ferrite::conformance::register_suite<ferrite::Reference>("Reference");
}
