// gated_activation and its gradient: shape rules.
#include "ferrite/ops/gated_activation.hpp"

namespace ferrite::op {

namespace {
void check_parts(std::string_view op, const Meta& gate, const Meta& up) {
  detail::check_floating(op, "gate", gate.dtype);
  detail::check_shape(op, "up", up.shape, gate.shape);
  detail::check_dtype(op, "up", up.dtype, gate.dtype);
}
}  // namespace

Metas GatedActivation::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  check_parts(type_name, in[0], in[1]);
  return {in[0]};
}

Metas GatedActivationBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  check_parts(type_name, in[1], in[2]);
  detail::check_shape(type_name, "gradient", in[0].shape, in[1].shape);
  detail::check_floating(type_name, "gradient", in[0].dtype);
  return {in[1], in[2]};
}

}  // namespace ferrite::op
