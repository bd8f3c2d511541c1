// lu on the CPU, on a column-major copy, as LAPACK wants it.
#include "ferrite/ops/lu.hpp"

#include "backend_cpu/linalg/lu.hpp"

namespace ferrite {

using namespace cpu;

void run(Cpu& cpu, const op::Lu& op, Ins in, Outs out) {
  visit_real(in[0].dtype(), [&]<class T>() {
    Destination order(cpu, out[1], false);
    const Array columns = cpu.allocate(turned(in[0]).meta());
    copy_into(cpu, turned(in[0]), columns);
    const Shape& shape = in[0].shape();
    const std::int64_t m = shape[shape.rank() - 2], n = shape.back();
    for_matrices(op.type_name, detail::batch_of(shape), std::min(m, n), "", [&](std::int64_t i) {
      factorize_columns(columns.data<T>() + i * m * n, m, n, order.array().data<std::int64_t>() + i * m);
      return true;
    });
    copy_into(cpu, turned(columns), out[0]);
    order.commit();
  });
}

}  // namespace ferrite
