// Unary functions and their derivatives: which kernel, computed in which type.
#include "backend_cuda/kit/kernel_tables.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::Unary& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  const DType given = in[0].dtype();
  // Real functions of integers have float results; all others are computed in the input's kind.
  const DType computed = is_floating(out[0].dtype()) ? out[0].dtype() : given;
  Elementwise kernel;
  kernel.typed = visit_dtype(given, [&]<class T>() { return unary_kernels<T>(op.fn); });
  kernel.strided = visit_compute(computed, [&]<class C>() { return unary_strided<C>(); });
  kernel.result = op.fn >= op::UnaryFn::logical_not ? DType::bool_ : given;
  kernel.fn = static_cast<std::uint8_t>(op.fn);
  kernel.parameter = op.alpha;
  const Source source{&in[0], given};
  run_elementwise(call, kernel, {&source, 1}, out[0], accumulates(mask, 0));
  call.finish();
}

void run(Cuda& cuda, const op::UnaryBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  const DType dtype = out[0].dtype();
  Elementwise kernel;
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) kernel.typed = unary_backward_kernels<T>(op.fn);
  });
  kernel.strided = dtype == DType::f64 ? unary_backward_strided<double>() : unary_backward_strided<float>();
  kernel.result = dtype;
  kernel.fn = static_cast<std::uint8_t>(op.fn);
  kernel.parameter = op.alpha;
  const Source sources[] = {{&in[0], dtype}, {&in[1], dtype}};
  run_elementwise(call, kernel, sources, out[0], accumulates(mask, 0));
  call.finish();
}

}  // namespace ferrite
