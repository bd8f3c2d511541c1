// reduce: which of the folds is meant.
#include "ferrite/ops/reduce.hpp"

#include <fmt/format.h>

#include "backend_cpu/kit/reduction.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/ops/fill.hpp"

namespace ferrite {

void run(Cpu& cpu, const op::Reduce& op, Ins in, Outs out, Accumulate mask) {
  const bool accumulate = accumulates(mask, 0);
  if (accumulate && op.fn != op::ReduceFn::sum)
    throw BackendError(fmt::format("[{}] accumulating output: only sums can be added up", op.name()));
  if (out[0].shape().numel() == 0) return;
  if (in[0].shape().numel() == 0) {  // nothing to fold: sum and any give 0, prod and all 1
    if (accumulate) return;
    const bool one = op.fn == op::ReduceFn::prod || op.fn == op::ReduceFn::all;
    return run(cpu, op::Fill{out[0].shape(), out[0].dtype(), one ? 1 : 0}, in, out);
  }
  const Shape axes = normalize_axes(op.name(), op.axes, in[0].shape().rank());
  cpu::reduce_axes(cpu::fold_for(op.fn, in[0].dtype()), in[0], out[0], axes, op.keepdim, accumulate);
}

}  // namespace ferrite
