// The adjoint transformation: from a kernel to the kernel of its gradient, in the same IR.
#pragma once

#include <string>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// An extra parameter of the backward kernel.
struct AdjointParameter {
  int parameter;            // of the kernel
  std::vector<int> fields;  // the path to it, if the parameter is a struct
  std::string name;
  Type type;  // of an array: the same type. Of a scalar, composite or field: an array of it, of one element
};
/// One for each floating array, scalar and composite parameter, and for each floating field of structs, in
/// order.
FERRITE_API std::vector<AdjointParameter> adjoint_parameters(const Module& module, const Function& kernel);

/// A module with the single kernel `<name>_backward`, launched over the same grid. It takes the kernel's
/// parameters and then adjoint_parameters, and does reverse-mode differentiation for every thread.
///
/// On entry an adjoint array holds the derivative of some number by the values that the kernel left in the
/// array. On return it holds the derivative by the values that were there before: for arrays that are only
/// read it grows by atomic addition, for elements that the kernel overwrote it is zero, for elements that the
/// kernel added to it is unchanged. Adjoints of scalars grow by the sum over all threads.
///
/// The arrays themselves are only read. They hold the values from before the kernel ran (this matters only
/// for arrays that are read before they are written). Targets of atomic_min and atomic_max are an exception:
/// they hold what the kernel left in them and, as in Warp, the adjoint goes to every value equal to that and
/// also stays in the target. Threads must not race (kernel/races.hpp): no other thread may use an element
/// that is written without an atomic. If a function has its own gradient (@wp.func_grad), calls use it.
///
/// Values are computed again, not stored: the kernel runs forward, then backward. If the rounds of a loop
/// need values of earlier rounds, the loop runs again up to each round, which takes quadratic time.
///
/// Throws KernelError, with the place, if the gradient cannot be computed: it needs an element after the
/// kernel changed it, or the result of an atomic; atomic_exch and atomic_cas of floats; shared arrays and
/// barriers; arrays inside structs, arrays of structs of floats, and variables that stand for arrays.
FERRITE_API Module adjoint(const Module& module, const Function& kernel);

}  // namespace ferrite::kernel
