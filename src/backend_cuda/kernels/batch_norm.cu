// batch_norm: one kernel for the moments of every part, one that merges them and writes y.
#include "backend_cuda/kit/planes.cuh"
#include "ferrite/ops/batch_norm.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct BatchNormArgs {
  PlanesShape shape;
  const void* x[1];
  void *y, *moments;  // moments [channels][parts]
  ChannelValues weight, bias, mean, rstd;
  double eps;
};

template <class T, int lanes>
__global__ void __launch_bounds__(plane_threads, 4)
    moments_kernel(const __grid_constant__ BatchNormArgs args) {
  using C = Compute<T>;
  Moments<C> total;
  const ChannelPart<T, lanes, 1> part(args.shape, args.x, blockIdx.x);
  part.walk([&](auto each, int elements) {
    // Of what is in registers in two passes: no cancellation.
    Moments<C> found{static_cast<C>(elements)};
    each([&](std::int64_t, const auto& x) {
#pragma unroll
      for (int j = 0; j < lanes; ++j) found.mean += x.of[j];
    });
    found.mean /= found.count;
    each([&](std::int64_t, const auto& x) {
#pragma unroll
      for (int j = 0; j < lanes; ++j) found.squares += (x.of[j] - found.mean) * (x.of[j] - found.mean);
    });
    total.merge(found);
  });
  total = RowTeam(plane_threads_shift).total(total);
  if (threadIdx.x == 0) static_cast<Moments<C>*>(args.moments)[blockIdx.x] = total;
}

/// From the last block to the first: what the moments kernel read last is still in the L2.
template <class T, int lanes>
__global__ void __launch_bounds__(plane_threads, 4)
    normalize_kernel(const __grid_constant__ BatchNormArgs args) {
  using C = Compute<T>;
  const ChannelPart<T, lanes, 1> part(args.shape, args.x, gridDim.x - 1 - blockIdx.x);
  const std::int64_t channel = part.channel();
  const auto* const moments = static_cast<const Moments<C>*>(args.moments) + channel * args.shape.parts;
  Moments<C> total;
  for (int p = threadIdx.x; p < args.shape.parts; p += plane_threads) total.merge(moments[p]);
  total = RowTeam(plane_threads_shift).total(total);
  const C mean = total.mean, rstd = ::rsqrt(total.squares / total.count + static_cast<C>(args.eps));
  if (part.is_first() && threadIdx.x == 0) {
    args.mean.write(channel, mean);
    args.rstd.write(channel, rstd);
  }
  const C scale = rstd * args.weight.read<C>(channel), shift = args.bias.read<C>(channel);
  part.walk([&](auto each, int) {
    each([&](std::int64_t at, auto x) {
#pragma unroll
      for (int j = 0; j < lanes; ++j) x.of[j] = (x.of[j] - mean) * scale + shift;
      write_pack<T, lanes>(static_cast<T*>(args.y), at, x, false);
    });
  });
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::BatchNorm& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  if (out[0].shape().numel() == 0) return;
  const DType dtype = out[0].dtype();
  const Planes planes(in[0].shape());
  const Array x = dense(cuda, planes.arrange(in[0]), dtype);
  const Array weight = dense(cuda, in[1]), bias = dense(cuda, in[2]);
  Destination y(cuda, planes.arrange(out[0]), false), mean(cuda, out[1], false), rstd(cuda, out[2], false);
  const std::int64_t length = planes.length();
  const int width = row_lanes(dtype, length, {{x.data(), length}, {y.array().data(), length}});
  BatchNormArgs args{
      planes.cut(call, width), {x.data()},           y.array().data(),     nullptr, channel_values(weight),
      channel_values(bias),    channel_values(mean), channel_values(rstd), op.eps};
  const auto blocks = static_cast<unsigned>(args.shape.channels * args.shape.parts);
  visit_floating(dtype, [&]<class T>() {
    const Scratch<Moments<Compute<T>>> moments(call, blocks);
    args.moments = moments.data();
    const auto launch = [&]<int lanes>() {
      moments_kernel<T, lanes><<<blocks, plane_threads, 0, call.stream()>>>(args);
      normalize_kernel<T, lanes><<<blocks, plane_threads, 0, call.stream()>>>(args);
    };
    if (width > 1)
      launch.template operator()<pack_lanes<T>>();
    else
      launch.template operator()<1>();
  });
  y.commit();
  mean.commit();
  rstd.commit();
  call.finish();
}

}  // namespace ferrite
