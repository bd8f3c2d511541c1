// argreduce: a reduction that folds positions.
#include "ferrite/ops/argreduce.hpp"

#include "backend_cpu/kit/reduction.hpp"
#include "ferrite/backend/cpu.hpp"

namespace ferrite {

void run(Cpu&, const op::ArgReduce& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const int axis = normalize_axis(op.name(), op.axis, in[0].shape().rank());
  cpu::reduce_axes(cpu::fold_for(op.fn, in[0].dtype()), in[0], out[0], {axis}, op.keepdim, false);
}

}  // namespace ferrite
