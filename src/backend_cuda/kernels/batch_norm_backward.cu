// The gradient of batch_norm: one kernel for the sums of every part, one that adds them up and writes dx.
#include "backend_cuda/kit/planes.cuh"
#include "ferrite/ops/batch_norm.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct BatchNormBackwardArgs {
  PlanesShape shape;
  const void* in[2];  // dy, x
  void *dx, *sums;    // sums [channels][parts] of dy, and of dy times the normed x
  ChannelValues weight, mean, rstd, dweight, dbias;
  bool add;
};

template <class T, int lanes>
__global__ void __launch_bounds__(plane_threads, 4)
    sums_kernel(const __grid_constant__ BatchNormBackwardArgs args) {
  using C = Compute<T>;
  const ChannelPart<T, lanes, 2> part(args.shape, args.in, blockIdx.x);
  const C mean = args.mean.read<C>(part.channel()), rstd = args.rstd.read<C>(part.channel());
  Sums<C, 2> total;
  part.walk([&](auto each, int) {
    each([&](std::int64_t, const auto& dy, const auto& x) {
#pragma unroll
      for (int j = 0; j < lanes; ++j) {
        total.of[0] += dy.of[j];
        total.of[1] += dy.of[j] * ((x.of[j] - mean) * rstd);
      }
    });
  });
  total = RowTeam(plane_threads_shift).total(total);
  if (threadIdx.x == 0) static_cast<Sums<C, 2>*>(args.sums)[blockIdx.x] = total;
}

/// From the last block to the first: what the other kernel read last is still in the L2.
template <class T, int lanes>
__global__ void __launch_bounds__(plane_threads, 4)
    gradient_kernel(const __grid_constant__ BatchNormBackwardArgs args) {
  using C = Compute<T>;
  const ChannelPart<T, lanes, 2> part(args.shape, args.in, gridDim.x - 1 - blockIdx.x);
  const std::int64_t channel = part.channel();
  const auto* const sums = static_cast<const Sums<C, 2>*>(args.sums) + channel * args.shape.parts;
  Sums<C, 2> total;
  for (int p = threadIdx.x; p < args.shape.parts; p += plane_threads) {
    total.of[0] += sums[p].of[0];
    total.of[1] += sums[p].of[1];
  }
  total = RowTeam(plane_threads_shift).total(total);
  if (part.is_first() && threadIdx.x == 0) {
    args.dbias.write(channel, total.of[0]);
    args.dweight.write(channel, total.of[1]);
  }
  const C mean = args.mean.read<C>(channel), rstd = args.rstd.read<C>(channel);
  const C count = static_cast<C>(args.shape.batch * args.shape.length);
  const C offset = total.of[0] / count, slope = total.of[1] / count * rstd;
  const C scale = rstd * args.weight.read<C>(channel);
  part.walk([&](auto each, int) {
    each([&](std::int64_t at, auto dy, const auto& x) {
#pragma unroll
      for (int j = 0; j < lanes; ++j) dy.of[j] = (dy.of[j] - offset - (x.of[j] - mean) * slope) * scale;
      write_pack<T, lanes>(static_cast<T*>(args.dx), at, dy, args.add);
    });
  });
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::BatchNormBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  if (out[0].shape().numel() == 0) return;
  const DType dtype = out[0].dtype();
  const Planes planes(in[1].shape());
  const Array dy = dense(cuda, planes.arrange(in[0]), dtype), x = dense(cuda, planes.arrange(in[1]), dtype);
  const Array weight = dense(cuda, in[2]), mean = dense(cuda, in[3]), rstd = dense(cuda, in[4]);
  Destination dx(cuda, planes.arrange(out[0]), accumulates(mask, 0));
  Destination dweight(cuda, out[1], accumulates(mask, 1)), dbias(cuda, out[2], accumulates(mask, 2));
  const std::int64_t length = planes.length();
  const int width =
      row_lanes(dtype, length, {{dy.data(), length}, {x.data(), length}, {dx.array().data(), length}});
  BatchNormBackwardArgs args{planes.cut(call, width), {dy.data(), x.data()},
                             dx.array().data(),       nullptr,
                             channel_values(weight),  channel_values(mean),
                             channel_values(rstd),    channel_values(dweight),
                             channel_values(dbias),   dx.add()};
  const auto blocks = static_cast<unsigned>(args.shape.channels * args.shape.parts);
  visit_floating(dtype, [&]<class T>() {
    const Scratch<Sums<Compute<T>, 2>> sums(call, blocks);
    args.sums = sums.data();
    const auto launch = [&]<int lanes>() {
      sums_kernel<T, lanes><<<blocks, plane_threads, 0, call.stream()>>>(args);
      gradient_kernel<T, lanes><<<blocks, plane_threads, 0, call.stream()>>>(args);
    };
    if (width > 1)
      launch.template operator()<pack_lanes<T>>();
    else
      launch.template operator()<1>();
  });
  dx.commit();
  dweight.commit();
  dbias.commit();
  call.finish();
}

}  // namespace ferrite
