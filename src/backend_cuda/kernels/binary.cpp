// Binary functions: of two arrays, or of an array and a scalar on either side.
#include "backend_cuda/kit/kernel_tables.hpp"

namespace ferrite {

using namespace cuda;
using op::BinaryFn;
using op::ScalarSide;

namespace {

/// What both operands are converted to. Logic asks of each whether it is zero, which the common dtype shows
/// as well as bool does.
DType operand_dtype(const op::Binary& op, Ins in) {
  if (op::is_logical(op.fn)) return in.size() == 2 ? promote(in[0].dtype(), in[1].dtype()) : in[0].dtype();
  const Meta metas[] = {{{}, in[0].dtype()}, {{}, in[in.size() - 1].dtype()}};
  return op.operand_dtype(MetaSpan(metas, in.size()));
}

}  // namespace

void run(Cuda& cuda, const op::Binary& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  const DType operand = operand_dtype(op, in);
  Elementwise kernel;
  Source sources[] = {{&in[0], operand}, {&in[in.size() - 1], operand}};
  BinaryFn fn = op.fn;
  if (fn == BinaryFn::pow && op.side == ScalarSide::right && op.scalar.to_double() == 2) {
    fn = BinaryFn::mul;  // the scalar gives way to the array: x * x
  } else if (op.side != ScalarSide::none) {
    sources[op.side == ScalarSide::left ? 0 : 1].array = nullptr;
    set_value(kernel, op::is_logical(fn) ? Scalar(op.scalar.to<bool>()) : op.operand(operand), operand);
  }
  kernel.typed = visit_dtype(operand, [&]<class T>() { return binary_kernels<T>(fn); });
  kernel.strided = visit_compute(operand, [&]<class C>() { return binary_strided<C>(); });
  kernel.result = op::is_comparison(fn) || op::is_logical(fn) ? DType::bool_ : operand;
  kernel.fn = static_cast<std::uint8_t>(fn);
  run_elementwise(call, kernel, sources, out[0], accumulates(mask, 0));
  call.finish();
}

}  // namespace ferrite
