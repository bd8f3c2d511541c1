// pointwise losses: names and shape rules.
#include "ferrite/ops/pointwise_loss.hpp"

#include <fmt/format.h>

namespace ferrite::op {

std::string_view to_string(LossFn fn) {
  static constexpr std::string_view names[] = {"mse", "l1", "huber", "bce_with_logits"};
  return names[static_cast<int>(fn)];
}

namespace {
void check_loss(std::string_view op, LossFn fn, double delta, MetaSpan in) {
  // Broadcasting here hides bugs: [N, 1] against [N] would give [N, N].
  if (!(in[0].shape == in[1].shape))
    throw ShapeError(fmt::format("[{}] prediction {} and target {}: shapes must be equal", op,
                                 ferrite::to_string(in[0].shape), ferrite::to_string(in[1].shape)));
  detail::check_floating(op, "prediction", in[0].dtype);
  detail::check_floating(op, "target", in[1].dtype);
  detail::check_attribute(op, "delta", delta, fn != LossFn::huber || delta > 0, "must be positive");
}
}  // namespace

Metas PointwiseLoss::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 2, 2);
  check_loss(name(), fn, delta, in);
  return {Meta{in[0].shape, promote(in[0].dtype, in[1].dtype)}};
}

std::string_view PointwiseLossBackward::name() const { return type_name; }

Metas PointwiseLossBackward::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 3, 3);
  check_loss(name(), fn, delta, in);
  detail::check_shape(name(), "gradient", in[2].shape, in[0].shape);
  detail::check_floating(name(), "gradient", in[2].dtype);
  return {in[0]};
}

}  // namespace ferrite::op
