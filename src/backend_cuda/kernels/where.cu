// where: kernels of every dtype, since they only choose.
#include "backend_cuda/kit/functions.cuh"
#include "ferrite/ops/where.hpp"

namespace ferrite {

using namespace cuda;
using op::ScalarSide;

void run(Cuda& cuda, const op::Where& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  const DType dtype = out[0].dtype();
  using Choice = Only<WhereSet, 0>;
  Elementwise kernel;
  visit_device_type(dtype, [&]<class T>() {
    kernel.typed = {dense_kernel<Choice, T, bool, T, T>, row_kernel<Choice, T, bool, T, T>};
  });
  visit_compute(dtype, [&]<class C>() { kernel.strided = strided_kernel<Choice, C, 3>; });
  kernel.result = dtype;
  Source sources[] = {{&in[0], DType::bool_}, {nullptr, dtype}, {nullptr, dtype}};
  std::size_t next = 1;
  if (op.side != ScalarSide::left) sources[1].array = &in[next++];
  if (op.side != ScalarSide::right) sources[2].array = &in[next];
  if (op.side != ScalarSide::none) set_value(kernel, op.scalar, dtype);
  run_elementwise(call, kernel, sources, out[0], accumulates(mask, 0));
  call.finish();
}

}  // namespace ferrite
