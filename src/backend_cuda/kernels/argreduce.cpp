// run(ArgReduce).
#include "ferrite/ops/argreduce.hpp"

#include "backend_cuda/kit/reduction.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::ArgReduce& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op.name());
  const int axis = normalize_axis(op.name(), op.axis, in[0].shape().rank());
  const AxisReduction reduction(in[0], out[0], {axis}, op.keepdim, ElementOrder::counted);
  const Extreme extreme = op.fn == op::ArgReduceFn::argmax ? Extreme::largest : Extreme::smallest;
  if (is_floating(in[0].dtype()))
    reduce_float_place(call, reduction, extreme);
  else
    reduce_integer_place(call, reduction, extreme);
  call.finish();
}

}  // namespace ferrite
