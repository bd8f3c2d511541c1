// scatter: the last of equal indices wins.
#include "ferrite/ops/scatter.hpp"

#include "backend_cpu/kit/scatter.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

void run(Cpu& cpu, const op::Scatter& op, Ins in, Outs out) {
  const int axis = normalize_axis(op::Scatter::type_name, op.axis, in[0].shape().rank());
  const Array index = cpu::checked_index(cpu, "scatter", in[1], axis, in[0].shape()[axis]);
  cpu::copy_into(cpu, in[0], out[0]);
  if (index.shape().numel() == 0) return;
  cpu::visit_size(size_of(out[0].dtype()),
                  [&]<class E>() { cpu::scatter<E>(out[0], index, in[2], axis, [](E& y, E x) { y = x; }); });
}

}  // namespace ferrite
