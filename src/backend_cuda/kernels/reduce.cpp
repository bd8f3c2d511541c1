// run(Reduce): which of the reductions is meant.
#include <fmt/format.h>

#include "backend_cuda/kit/reduction.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::Reduce& op, Ins in, Outs out, Accumulate mask) {
  using op::ReduceFn;
  const bool add = accumulates(mask, 0);
  if (add && op.fn != ReduceFn::sum)
    throw BackendError(fmt::format("[{}] accumulating output: only sums can be added up", op.name()));
  if (out[0].shape().numel() == 0) return;
  if (in[0].shape().numel() == 0) {  // nothing to take in: sum and any give 0, prod and all 1
    if (add) return;
    const bool one = op.fn == ReduceFn::prod || op.fn == ReduceFn::all;
    return run(cuda, op::Fill{out[0].shape(), out[0].dtype(), one ? 1 : 0}, in, out);
  }
  const Call call(cuda, op.name());
  const Shape axes = normalize_axes(op.name(), op.axes, in[0].shape().rank());
  // Only 16-bit floats are summed into another dtype by the kernel, f32.
  const bool widens = is_floating(in[0].dtype()) && out[0].dtype() != in[0].dtype() &&
                      !(size_of(in[0].dtype()) == 2 && out[0].dtype() == DType::f32) &&
                      op.fn == ReduceFn::sum;
  const Array x = widens ? dense(cuda, in[0], out[0].dtype()) : in[0];
  if (op.fn == ReduceFn::sum && axes == Shape{0} && sum_matrix_columns(call, x, out[0], add)) {
    call.finish();
    return;
  }
  const AxisReduction reduction(x, out[0], axes, op.keepdim);
  const DType dtype = x.dtype();
  const bool extreme = op.fn == ReduceFn::max || op.fn == ReduceFn::min;
  const bool any_or_all = !extreme && op.fn != ReduceFn::sum && op.fn != ReduceFn::prod;
  if (op.fn == ReduceFn::sum && is_floating(dtype))
    reduce_float_sum(call, reduction, Term::value, 1, false, add);
  else if (op.fn == ReduceFn::sum)
    reduce_integer_sum(call, reduction, add);
  else if (op.fn == ReduceFn::prod)
    reduce_product(call, reduction);
  else if (any_or_all || dtype == DType::bool_)  // the largest truth value is `any`, the smallest `all`
    reduce_any(call, reduction, op.fn == ReduceFn::all || op.fn == ReduceFn::min);
  else
    reduce_extremum(call, reduction, op.fn == ReduceFn::max ? Extreme::largest : Extreme::smallest);
  call.finish();
}

}  // namespace ferrite
