// scatter_add: sums in index order.
#include "ferrite/ops/scatter_add.hpp"

#include "backend_cpu/kit/scatter.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

void run(Cpu& cpu, const op::ScatterAdd& op, Ins in, Outs out) {
  const int axis = normalize_axis(op::ScatterAdd::type_name, op.axis, in[0].shape().rank());
  const Array index = cpu::checked_index(cpu, "scatter_add", in[1], axis, in[0].shape()[axis]);
  // 16-bit floats are added up in f32 and rounded once.
  const DType dtype = out[0].dtype();
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  const Array sums = narrow ? cpu.allocate({out[0].shape(), DType::f32}) : out[0];
  Array source = in[2];
  if (narrow) {
    source = cpu.allocate({in[2].shape(), DType::f32});
    cpu::copy_into(cpu, in[2], source);
  }
  cpu::copy_into(cpu, in[0], sums);
  if (index.shape().numel() > 0) {
    visit_dtype(sums.dtype(), [&]<class T>() {
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        // Integers wrap around, which only unsigned ones may.
        using E = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                              std::type_identity<T>>::type;
        cpu::scatter<E>(sums, index, source, axis, [](E& y, E x) { y = static_cast<E>(y + x); });
      }
    });
  }
  if (narrow) cpu::copy_into(cpu, sums, out[0]);
}

}  // namespace ferrite
