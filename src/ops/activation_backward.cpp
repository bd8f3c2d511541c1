// activation_backward: the shape rule.
#include "ferrite/ops/activation_backward.hpp"

namespace ferrite::op {

Metas ActivationBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_rank(type_name, "saved", in[0].shape, 2);
  detail::check_shape(type_name, "gradient", in[1].shape, in[0].shape);
  const Meta d = UnaryBackward{fn, alpha}.infer(in)[0];
  return {d, Reduce{ReduceFn::sum, {0}, false, at_least}.infer(MetaSpan(&d, 1))[0]};
}

}  // namespace ferrite::op
