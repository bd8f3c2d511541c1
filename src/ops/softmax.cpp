// softmax, log_softmax and their gradients: shape rules and costs.
#include "ferrite/ops/softmax.hpp"

namespace ferrite::op {

namespace {
double axis_length(std::string_view op, int axis, const Meta& meta) {
  return static_cast<double>(meta.shape[normalize_axis(op, axis, meta.shape.rank())]);
}

Metas along_axis(std::string_view op, int axis, MetaSpan in) {
  detail::check_arity(op, in.size(), 1, 1);
  normalize_axis(op, axis, in[0].shape.rank());
  detail::check_floating(op, "x", in[0].dtype);
  return {in[0]};
}

Metas along_axis_backward(std::string_view op, int axis, MetaSpan in) {
  detail::check_arity(op, in.size(), 2, 2);
  normalize_axis(op, axis, in[0].shape.rank());
  detail::check_floating(op, "y", in[0].dtype);
  detail::check_floating(op, "gradient", in[1].dtype);
  detail::check_shape(op, "gradient", in[1].shape, in[0].shape);
  return {in[0]};
}

Cost row_cost(MetaSpan in, MetaSpan out) {
  return {12.0 * static_cast<double>(in[0].shape.numel()),
          static_cast<double>(in[0].bytes() + out[0].bytes())};
}
}  // namespace

Metas Softmax::infer(MetaSpan in) const { return along_axis(type_name, axis, in); }
Cost Softmax::cost(MetaSpan in, MetaSpan out) const { return row_cost(in, out); }
double Softmax::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }
Metas SoftmaxBackward::infer(MetaSpan in) const { return along_axis_backward(type_name, axis, in); }
double SoftmaxBackward::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }
Metas LogSoftmax::infer(MetaSpan in) const { return along_axis(type_name, axis, in); }
Cost LogSoftmax::cost(MetaSpan in, MetaSpan out) const { return row_cost(in, out); }
double LogSoftmax::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }
Metas LogSoftmaxBackward::infer(MetaSpan in) const { return along_axis_backward(type_name, axis, in); }
double LogSoftmaxBackward::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }

}  // namespace ferrite::op
