// iota: start + i * step, in dense memory.
#include "backend_cuda/kit/random.cuh"
#include "ferrite/ops/iota.hpp"

namespace ferrite {
namespace cuda {
namespace {

template <class T>
struct IotaArgs {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  T* out;
  std::int64_t count;
  Wide start, step;
  bool aligned;
};

template <class T>
__global__ void __launch_bounds__(block_threads) iota_kernel(const __grid_constant__ IotaArgs<T> args) {
  using Wide = typename IotaArgs<T>::Wide;
  const std::int64_t first = group_start<T>();
  Group<T> group;
#pragma unroll
  for (int i = 0; i < group_size<T>; ++i)
    group.lane[i] = convert_to<T>(multiply_then_add(static_cast<Wide>(first + i), args.step, args.start));
  store_group(args.out, first, args.count, args.aligned, group);
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::Iota& op, Ins, Outs out) {
  const Call call(cuda, op_name(op));
  Destination target(cuda, out[0], false);
  visit_device_type(out[0].dtype(), [&]<class T>() {
    using Wide = typename IotaArgs<T>::Wide;
    T* const data = target.array().data<T>();
    if (op.count > 0) {
      launch(call, iota_kernel<T>, group_blocks<T>(op.count),
             IotaArgs<T>{data, op.count, op.start.to<Wide>(), op.step.to<Wide>(), is_group_aligned<T>(data)});
    }
  });
  target.commit();
  call.finish();
}

}  // namespace ferrite
