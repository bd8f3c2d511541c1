// dropout: the mask is drawn on the way and never stored.
#include <cmath>

#include "backend_cuda/kit/random.cuh"
#include "ferrite/ops/dropout.hpp"

namespace ferrite {
namespace cuda {
namespace {

template <class T>
struct DropoutArgs {
  const T* x;
  T* y;
  std::int64_t count;
  Sequence sequence;
  std::uint32_t threshold;  // p 2^24: an element is kept where the top 24 bits of its word reach it
  double scale;
  bool aligned, add;
};

template <class T>
__global__ void __launch_bounds__(block_threads) dropout_kernel(const __grid_constant__ DropoutArgs<T> args) {
  using C = Compute<T>;
  const std::int64_t first = group_start<T>();
  if (first >= args.count) return;
  Group<T> group = load_group(args.x, first, args.count, args.aligned);
  Group<T> old{};
  if (args.add) old = load_group(args.y, first, args.count, args.aligned);
  const Words<group_size<T>> words(args.sequence.key(), static_cast<std::uint64_t>(first));
  const C scale = static_cast<C>(args.scale);
#pragma unroll
  for (int i = 0; i < group_size<T>; ++i) {
    const bool keep = words.word[i] >> 8 >= args.threshold;
    C y = keep ? convert_to<C>(group.lane[i]) * scale : C{0};
    if (args.add) y += convert_to<C>(old.lane[i]);
    group.lane[i] = convert_to<T>(y);
  }
  store_group(args.y, first, args.count, args.aligned, group);
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::Dropout& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  const Array x = dense(cuda, in[0]);
  Destination target(cuda, out[0], accumulates(mask, 0));
  const std::int64_t count = x.shape().numel();
  const auto threshold = static_cast<std::uint32_t>(std::ceil(static_cast<float>(op.p) * 0x1p24f));
  visit_floating(x.dtype(), [&]<class T>() {
    T* const y = target.array().data<T>();
    const DropoutArgs<T> args{x.data<T>(),
                              y,
                              count,
                              Sequence(call, {op.seed, op.stream}),
                              threshold,
                              op.p < 1 ? 1 / (1 - op.p) : 0,
                              is_group_aligned<T>(x.data()) && is_group_aligned<T>(y),
                              target.add()};
    if (count > 0) launch(call, dropout_kernel<T>, group_blocks<T>(count), args);
  });
  target.commit();
  call.finish();
}

}  // namespace ferrite
