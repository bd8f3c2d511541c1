// layer_norm and rms_norm. The two differ by the mean and the bias alone, so that they share their kernel.
#include "backend_cuda/norm_rows.cuh"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/rms_norm.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct NormArgs {
  RowsArgs<1> rows;
  const void *weight, *bias;  // no bias: rms_norm
  void *y, *mean, *rstd;
  double eps;
  int slots;
};

/// The sum of squared distances from the mean is taken in a pass of its own: no cancellation.
template <class T, class W, int lanes, bool resident>
__global__ void __launch_bounds__(RowPlan::most_threads, 2)
    norm_kernel(const __grid_constant__ NormArgs args) {
  using C = Compute<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  const RowsShape& shape = args.rows.shape;
  const bool centred = args.bias != nullptr;
  Rows<T, lanes, 1, resident> rows(args.rows);
  RowTeam& team = rows.team();
  const Parameter<W, lanes, resident> weight(args.weight, memory, args.slots, shape, team);
  const Parameter<W, lanes, resident> bias(args.bias, memory + SharedPacks<W, lanes>::bytes(args.slots),
                                           args.slots, shape, team);
  __syncthreads();

  const C count = static_cast<C>(shape.length);
  while (rows.next()) {
    C mean = 0;
    if (centred) {
      Sums<C, 1> sum;
      rows.template pass<false>([&](auto each) {
        each([&](int, std::int64_t, const auto& x) {
#pragma unroll
          for (int j = 0; j < lanes; ++j) sum.of[0] += x.of[j];
        });
      });
      mean = team.total(sum).of[0] / count;
    }
    Sums<C, 1> squares;
    rows.template pass<false>([&](auto each) {
      each([&](int, std::int64_t, const auto& x) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) squares.of[0] += (x.of[j] - mean) * (x.of[j] - mean);
      });
    });
    const C rstd = ::rsqrt(team.total(squares).of[0] / count + static_cast<C>(args.eps));
    if (team.is_first_thread() && rows.active()) {
      if (centred) static_cast<C*>(args.mean)[rows.row()] = mean;
      static_cast<C*>(args.rstd)[rows.row()] = rstd;
    }

    T* const y = static_cast<T*>(args.y) + rows.row() * shape.length;
    rows.template pass<true>([&](auto each) {
      each([&](int item, std::int64_t index, auto x) {
        const int slot = (item << shape.threads_shift) + team.lane();
        const auto w = weight.get(slot, index);
        if (centred) {
          const auto b = bias.get(slot, index);
#pragma unroll
          for (int j = 0; j < lanes; ++j) x.of[j] = (x.of[j] - mean) * rstd * w.of[j] + b.of[j];
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) x.of[j] = x.of[j] * rstd * w.of[j];
        }
        write_pack<T, lanes>(y, index, x, false);
      });
    });
  }
}

template <bool centred>
void run_norm(Cuda& cuda, const Call& call, double eps, Ins in, Outs out) {
  const DType dtype = out[0].dtype();
  const RowArray x = rows_of(cuda, in[0], dtype);
  Destination y(cuda, out[0], false), mean(cuda, out[1], false), rstd(cuda, out[centred ? 2 : 1], false);
  const bool one_dtype = !centred || in[1].dtype() == in[in.size() - 1].dtype();
  NormPlan plan(call, dtype, one_dtype ? in[1].dtype() : DType::f32, x.count, x.length,
                row_lanes(dtype, x.length, {x.place(), {y.array().data(), x.length}}));
  const Array weight = dense(cuda, in[1], plan.parameters);
  const Array bias = centred ? dense(cuda, in[2], plan.parameters) : weight;
  const NormArgs args{{plan.shape(), {x.place()}},
                      weight.data(),
                      centred ? bias.data() : nullptr,
                      y.array().data(),
                      mean.array().data(),
                      rstd.array().data(),
                      eps,
                      static_cast<int>(plan.slots())};
  plan.visit([&]<class T, class W, int lanes, bool resident>() {
    const auto kernel = norm_kernel<T, W, lanes, resident>;
    plan.fit(kernel, 1024, SharedPacks<W, lanes>::bytes(plan.slots()) * (centred ? 2 : 1));
    plan.launch(kernel, args);
  });
  y.commit();
  if (centred) mean.commit();
  rstd.commit();
  call.finish();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void Cuda::run(const op::LayerNorm& op, Ins in, Outs out) {
  const Call call(*this, op_name(op));
  run_norm<true>(*this, call, op.eps, in, out);
}
void Cuda::run(const op::RmsNorm& op, Ins in, Outs out) {
  const Call call(*this, op_name(op));
  run_norm<false>(*this, call, op.eps, in, out);
}

}  // namespace ferrite
