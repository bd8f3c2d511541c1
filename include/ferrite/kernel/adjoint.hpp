// The adjoint transformation: from a kernel to the kernel of its gradient, in the same IR.
#pragma once

#include <string>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// A parameter that the backward kernel has beyond those of the kernel.
struct AdjointParameter {
  int parameter;            // of the kernel
  std::vector<int> fields;  // the path to it, if the parameter is a struct
  std::string name;
  Type type;  // of an array: the same type. Of a scalar, composite or field: an array of it, of one element
};
/// One for each floating array, scalar and composite among the parameters, and for each floating field of
/// structs, in order.
FERRITE_API std::vector<AdjointParameter> adjoint_parameters(const Module& module, const Function& kernel);

/// A module with the one kernel `<name>_backward`, launched over the same grid. It takes the kernel's
/// parameters and then adjoint_parameters, and does for every thread what reverse-mode differentiation asks.
///
/// Adjoint arrays come in with the derivative of some number by what the kernel left in the array and go out
/// with the derivative by what was in it before: of arrays only read they grow by atomic addition, elements
/// that the kernel overwrote are zero afterwards, elements it added to keep their value. Scalars' adjoints
/// grow by the sum over all threads.
///
/// Arrays themselves are read and not changed. They hold what they held before the kernel ran (it matters
/// only for arrays that are read before they are written); but targets of atomic_min and atomic_max hold what
/// it left in them, and, as in Warp, the adjoint goes to every value equal to that and stays in the target
/// too. Threads must not race (kernel/races.hpp): an element written without an atomic is no other thread's
/// business. Calls of functions with a gradient of their own (@wp.func_grad) use that.
///
/// Values are computed again rather than stored: the kernel runs forward, then backward. A loop whose rounds
/// need the values of earlier rounds is run again up to each round, which takes quadratic time.
///
/// Throws KernelError, with the place, where the gradient cannot be computed: it needs an element after the
/// kernel changed it, or the result of an atomic; atomic_exch and atomic_cas of floats; shared arrays and
/// barriers; arrays inside structs, arrays of structs of floats, and variables that stand for arrays.
FERRITE_API Module adjoint(const Module& module, const Function& kernel);

}  // namespace ferrite::kernel
