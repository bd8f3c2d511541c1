// mean, var, logsumexp and norm: each one pass over the elements.
#include "ferrite/ops/statistic.hpp"

#include <cmath>

#include "backend_cuda/kit/reduction.hpp"
#include "ferrite/ops/fill.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::Statistic& op, Ins in, Outs out) {
  using op::StatisticFn;
  if (out[0].shape().numel() == 0) return;
  if (in[0].shape().numel() == 0)  // the norm of nothing; the others are refused before
    return run(cuda, op::Fill{out[0].shape(), out[0].dtype(), 0}, in, out);
  const Call call(cuda, op.name());
  const Shape axes = normalize_axes(op.name(), op.axes, in[0].shape().rank());
  // Integers become the floats that the result is of.
  const Array x = is_floating(in[0].dtype()) ? in[0] : dense(cuda, in[0], out[0].dtype());
  const AxisReduction reduction(x, out[0], axes, op.keepdim);
  switch (op.fn) {
    case StatisticFn::mean:
      reduce_float_sum(call, reduction, Term::value, static_cast<double>(reduction.length), false, false);
      break;
    case StatisticFn::var:
      reduce_variance(call, reduction, op.parameter);
      break;
    case StatisticFn::logsumexp:
      reduce_logsumexp(call, reduction);
      break;
    default:
      if (std::isinf(op.parameter))
        reduce_extremum(call, reduction, Extreme::magnitude);
      else
        reduce_float_sum(call, reduction, op.parameter == 1 ? Term::magnitude : Term::square, 1,
                         op.parameter == 2, false);
  }
  call.finish();
}

}  // namespace ferrite
