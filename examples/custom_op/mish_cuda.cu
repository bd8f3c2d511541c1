// mish on an NVIDIA GPU.
#include <ferrite/cuda/kernel.cuh>

#include "mish.hpp"

using namespace ferrite;

template <class T>
struct MishArgs {
  const T* x;
  T* y;
  std::int64_t n;
};

template <class T>
__global__ void mish_kernel(const __grid_constant__ MishArgs<T> args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  const auto x = cuda::convert_to<cuda::Compute<T>>(args.x[i]);
  const auto softplus = (x < 0 ? 0 : x) + log1p(exp(-abs(x)));
  args.y[i] = cuda::convert_to<T>(x * tanh(softplus));
}

void run(Cuda& cuda, const Mish& op, Ins in, Outs out) {
  const cuda::Call call(cuda, op_name(op));
  const Array x = cuda::dense(cuda, in[0]);
  cuda::Destination y(cuda, out[0], false);
  const std::int64_t n = x.shape().numel();
  cuda::visit_floating(x.dtype(), [&]<class T>() {
    const MishArgs<T> args{x.data<T>(), y.array().data<T>(), n};
    if (n > 0) cuda::launch(call, mish_kernel<T>, divide_up(n, cuda::block_threads), args);
  });
  y.commit();
  call.finish();
}
