// scan: shape rule.
#include "ferrite/ops/scan.hpp"

namespace ferrite::op {

Metas Scan::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  normalize_axis(name(), axis, in[0].shape.rank());
  return {Meta{in[0].shape, sum_result(in[0].dtype)}};
}

double Scan::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape[normalize_axis(name(), axis, in[0].shape.rank())]);
}

}  // namespace ferrite::op
