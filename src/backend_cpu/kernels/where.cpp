// where: chooses among elements and computes nothing.
#include "ferrite/ops/where.hpp"

#include "backend_cpu/kit/elementwise.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/cpu/blocks.hpp"

namespace ferrite {
namespace cpu {
namespace {

/// Selects bits: E is an unsigned integer of the elements' size.
template <class E>
[[gnu::flatten]] void where_kernel(const void* const* in, void* out, std::int64_t n, double) {
  const auto* condition = static_cast<const std::uint8_t*>(in[0]);
  const auto *a = static_cast<const E*>(in[1]), *b = static_cast<const E*>(in[2]);
  auto* y = static_cast<E*>(out);
  for_each_index(n, [=](std::int64_t i) {
    const E left = a[i], right = b[i];
    y[i] = condition[i] != 0 ? left : right;
  });
}

BlockKernel where_kernel_for(DType dtype) {
  return visit_size(size_of(dtype), []<class E>() -> BlockKernel { return where_kernel<E>; });
}

}  // namespace
}  // namespace cpu

void run(Cpu&, const op::Where& op, Ins in, Outs out, Accumulate mask) {
  // A choice computes nothing: elements pass through as they are, unless they are to be added.
  const DType given = out[0].dtype();
  const bool accumulate = accumulates(mask, 0);
  const DType dtype = accumulate ? compute_dtype(given) : given;
  const cpu::ScalarValue value(op.scalar, given, dtype);
  cpu::Source sources[] = {
      {&in[0], nullptr, DType::bool_}, {nullptr, nullptr, dtype}, {nullptr, nullptr, dtype}};
  std::size_t next = 1;
  if (op.side == op::ScalarSide::left)
    sources[1].value = value.bytes;
  else
    sources[1].array = &in[next++];
  if (op.side == op::ScalarSide::right)
    sources[2].value = value.bytes;
  else
    sources[2].array = &in[next++];
  cpu::run_elementwise({cpu::where_kernel_for(dtype), dtype}, sources, out[0], accumulate);
}

}  // namespace ferrite
