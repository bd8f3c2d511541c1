// Binary functions: one block kernel per function and compute type.
#include <array>
#include <utility>

#include "backend_cpu/kit/elementwise.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ops/binary.hpp"

namespace ferrite {
namespace cpu {
namespace {

using op::BinaryFn;
using op::ScalarSide;

constexpr bool gives_bool(BinaryFn fn) { return op::is_comparison(fn) || op::is_logical(fn); }

template <class T, BinaryFn fn>
[[gnu::flatten]] void binary_kernel(const void* const* in, void* out, std::int64_t n, double) {
  const auto *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  auto* y = static_cast<std::conditional_t<gives_bool(fn), bool, T>*>(out);
  constexpr bool calls = fn == BinaryFn::pow || fn == BinaryFn::remainder || fn == BinaryFn::atan2;
  for_each_index<calls ? Loop::scalar : Loop::vector>(
      n, [=](std::int64_t i) { y[i] = formulas::binary(formulas::Standard<T>{}, fn, a[i], b[i]); });
}

template <BinaryFn fn>
[[gnu::flatten]] void logical_kernel(const void* const* in, void* out, std::int64_t n, double) {
  const auto *a = static_cast<const std::uint8_t*>(in[0]), *b = static_cast<const std::uint8_t*>(in[1]);
  auto* y = static_cast<bool*>(out);
  for_each_index(n, [=](std::int64_t i) {
    const bool left = a[i] != 0, right = b[i] != 0;
    if constexpr (fn == BinaryFn::logical_and)
      y[i] = left & right;
    else if constexpr (fn == BinaryFn::logical_or)
      y[i] = left | right;
    else
      y[i] = left != right;
  });
}

BlockKernel logical_kernel_for(BinaryFn fn) {
  if (fn == BinaryFn::logical_and) return logical_kernel<BinaryFn::logical_and>;
  return fn == BinaryFn::logical_or ? logical_kernel<BinaryFn::logical_or>
                                    : logical_kernel<BinaryFn::logical_xor>;
}

using BinaryKernels = std::array<BlockKernel, op::binary_fn_count>;
template <class T, std::size_t... i>
constexpr BinaryKernels binary_kernels(std::index_sequence<i...>) {
  return {&binary_kernel<T, static_cast<BinaryFn>(i)>...};
}

}  // namespace
}  // namespace cpu

void run(Cpu&, const op::Binary& op, Ins in, Outs out, Accumulate mask) {
  const Meta metas[] = {in[0].meta(), in[in.size() - 1].meta()};
  const DType operand = op.operand_dtype(MetaSpan(metas, in.size()));
  const bool logical = op::is_logical(op.fn), accumulate = accumulates(mask, 0);
  const DType dtype = logical ? DType::bool_ : compute_dtype(operand);
  const cpu::ScalarValue value(op.operand(operand), operand, dtype);

  cpu::Source sources[2];
  std::size_t next = 0;
  for (const op::ScalarSide side : {op::ScalarSide::left, op::ScalarSide::right}) {
    cpu::Source& source = sources[side == op::ScalarSide::left ? 0 : 1];
    source.dtype = dtype;
    if (op.side == side)
      source.value = value.bytes;
    else
      source.array = &in[next++];
  }
  if (logical)
    return cpu::run_elementwise({cpu::logical_kernel_for(op.fn), DType::bool_}, sources, out[0], accumulate);
  visit_compute(dtype, [&]<class T>() {
    static constexpr cpu::BinaryKernels kernels =
        cpu::binary_kernels<T>(std::make_index_sequence<op::binary_fn_count>{});
    const DType result = cpu::gives_bool(op.fn) ? DType::bool_ : dtype;
    cpu::run_elementwise({kernels[static_cast<std::size_t>(op.fn)], result}, sources, out[0], accumulate);
  });
}

}  // namespace ferrite
