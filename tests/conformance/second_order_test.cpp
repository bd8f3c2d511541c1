// Every gradient is differentiated once more: the map from inputs to gradients is itself a case, and its
// gradient under Autodiff<Autodiff<Reference>> is checked against central differences.
#include "all_cases.hpp"
#include "checks.hpp"
#include "suite.hpp"

namespace ferrite::conformance {
namespace {

using First = Autodiff<Reference>;
using Second = Autodiff<First>;

/// x -> the gradients of a fixed functional of the case's outputs.
Case<First> gradient_case(Second& outer, const Case<Second>& tested) {
  const auto call = [&outer, tested](const std::vector<Tensor<First>>& in) {
    std::vector<Tensor<Second>> lifted;
    for (std::size_t i = 0; i < in.size(); ++i) {
      lifted.push_back(lift(outer, in[i]));
      if (tested.spec.inputs[i].differentiable)
        lifted[i] = parameter(lifted[i], "input " + std::to_string(i));
    }
    Tensor<Second> total;
    for (const Tensor<Second>& out : tested.call(lifted)) {
      if (!is_floating(out.dtype())) continue;
      // Weighted: the plain sum of squares of a normalised tensor is constant.
      const Input weights{out.shape(), Input::real, -1, 1};
      const Tensor<Second> w = from_vector(outer, values_for(weights, 71), out.shape());
      const Tensor<Second> term = sum((square(out) * 0.5 + out) * w);
      total = total.defined() ? total + term : term;
    }
    const auto grads = total.backward();
    std::vector<Tensor<First>> out;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (tested.spec.inputs[i].differentiable) out.push_back(grads.of(lifted[i]));
    return out;
  };
  return {tested.spec, call};
}

const bool registered = [] {
  for (const Case<Second>& tested : all_cases<Second>()) {
    if (!tested.spec.differentiable) continue;
    add_test("SecondOrder/Reference", tested.spec.name, [tested] {
      Second outer;
      First& first = outer.inner();
      check_gradient(first, first, gradient_case(outer, tested), 2e-6, Missing::is_zero);
    });
  }
  return true;
}();

}  // namespace
}  // namespace ferrite::conformance
