// iota: start + i * step.
#include "ferrite/ops/iota.hpp"

#include "backend_cpu/math/scalar_functions.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

void run(Cpu& cpu, const op::Iota& op, Ins, Outs out) {
  cpu::Destination target(cpu, out[0], false);
  visit_dtype(out[0].dtype(), [&]<class T>() {
    using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
    const auto start = op.start.to<Wide>(), step = op.step.to<Wide>();
    T* y = target.array().data<T>();
    parallel_ranges(op.count, cpu::chunk_size, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        y[i] = convert<T>(scalar::multiply_then_add(static_cast<Wide>(i), step, start));
    });
  });
  target.commit();
}

}  // namespace ferrite
