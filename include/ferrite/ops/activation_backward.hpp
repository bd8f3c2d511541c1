// activation_backward: the gradient of an activation and, in the same pass, that of the bias before it.
#pragma once

#include <optional>

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {
namespace op {

/// # Shapes: saved [N, O], dy [N, O] -> d [N, O], sums [O]
/// d = dy f'(saved), as UnaryBackward; sums = the sums of d over the rows, in the dtype of d or at least in
/// `at_least`. Kernels add what they have before it is rounded to d.
struct FERRITE_API ActivationBackward {
  static constexpr LibraryName type_name = "activation_backward";
  UnaryFn fn = UnaryFn::neg;
  double alpha = 1;
  std::optional<DType> at_least = std::nullopt;

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape[0]); }
  Metas example(DType d) {
    fn = UnaryFn::gelu_tanh;
    return detail::alike(2, {3, 8}, d);
  }
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("alpha", self.alpha);
    visit("at_least", self.at_least);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B> d = eval(UnaryBackward{fn, alpha}, in[0], in[1]);
    return {d, eval(Reduce{ReduceFn::sum, {0}, false, at_least}, d)};
  }
};

}  // namespace op

// Kernels (backend/concept.hpp): of 16-bit elements.
FERRITE_API void run(Cuda&, const op::ActivationBackward& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cuda&, const op::ActivationBackward& op, MetaSpan in);

}  // namespace ferrite
