// softmax_cross_entropy, alone or with its gradient: the logits are read once, and the gradient follows from
// what is still in registers or shared memory. It may be written over the logits. The softmax is never
// stored.
#include "backend_cuda/kit/cross_entropy.cuh"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct Loss {
  Targets targets;
  Strided loss, lse;  // lse: without a gradient
  Strided scale;      // of the gradient
  void* gradient;
  double smoothing;
};
template <class In>
struct LossArgs {
  In in;
  Loss loss;
};

/// What a row's loss is made of. The sum leaves the target out: near certainty it is close to 1, and the
/// rest, which then is all that counts, would be lost beside it.
template <class T>
struct LossTotal : MaxAndSum<T> {
  using C = Compute<T>;
  C chosen = 0, plain = 0;  // the logit of the target, the sum of all logits

  template <int lanes, class Each>
  __device__ __forceinline__ void add(Each&& each, std::int64_t target, bool needs_plain) {
    this->raise_to_all(each);
    const C shift = this->shift_for(this->top);
    each([&](auto pack, int, auto x) {
      if (needs_plain) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) plain += x.of[j];
      }
      const std::int64_t lane = target - static_cast<std::int64_t>(pack) * lanes;
      if (lane >= 0 && lane < lanes) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) {
          if (j != lane) continue;
          chosen = x.of[j];
          x.of[j] = -std::numeric_limits<C>::infinity();
        }
      }
#pragma unroll
      for (int j = 0; j < lanes; ++j) this->sum += exp_for<T>(x.of[j] - shift);
    });
  }
  __device__ __forceinline__ void across(int width) {
    MaxAndSum<T>::across(width);
    for (int distance = width / 2; distance > 0; distance /= 2) {
      chosen += from_lane_across(chosen, distance);
      plain += from_lane_across(plain, distance);
    }
  }
};

template <class T, int lanes, bool with_gradient, class RowsOrRing>
__device__ __forceinline__ void loss_rows(RowsOrRing& rows, const Loss& args) {
  using C = Compute<T>;
  const Targets& targets = args.targets;
  const C smoothing = static_cast<C>(args.smoothing);
  while (rows.next()) {
    const std::int64_t target = rows.active() ? targets.read(rows.row()) : targets.ignore_index;
    const bool ignored = target == targets.ignore_index;
    LossTotal<T> total;
    rows.pass([&](auto each) { total.template add<lanes>(each, target, smoothing != 0); });
    total = rows.team().total(total);
    const C shift = total.shift_for(total.top), z = total.chosen - shift, others = total.sum;
    const C own = targets.is_class(target) ? std::exp(z) : C{0};
    const C sum = others + own, log_sum = std::log(sum);
    if (rows.team().is_first_thread() && rows.active()) {
      C loss = own > others && is_finite(own) ? std::log1p(others / own) : log_sum - z;
      if (smoothing != 0)
        loss += (log_sum - (total.plain / static_cast<C>(targets.count) - shift) - loss) * smoothing;
      targets.report_if_wrong(rows.row(), target);
      args.loss.at<C>(rows.row()) = ignored ? C{0} : loss;
      if constexpr (!with_gradient) args.lse.at<C>(rows.row()) = log_sum + shift;
    }
    if constexpr (with_gradient) {
      const C scale = args.scale.at<C>(0);
      const RowGradient<T> gradient{target, shift,     log_sum,
                                    scale,  smoothing, smoothing / static_cast<C>(targets.count) * scale};
      const C error = is_finite(sum) ? -others / sum : std::expm1(z - log_sum);
      T* const dx = static_cast<T*>(args.gradient) + rows.row() * targets.count;
      rows.pass([&](auto each) {
        each([&](auto pack, int, const auto& x) {
          Wide<C, lanes> slope{};
          if (!ignored) slope = gradient.template of<lanes>(pack, x, [&](C) { return error; });
          write_pack<T, lanes>(dx, pack, slope, false);
        });
      });
    }
  }
}

template <class T, int lanes, bool resident, bool with_gradient>
__global__ void __launch_bounds__(most_row_threads, sizeof(T) == 8 ? 1 : 2)
    loss_kernel(const __grid_constant__ LossArgs<RowsArgs<1>> args) {
  Rows<T, lanes, 1, resident> rows(args.in);
  loss_rows<T, lanes, with_gradient>(rows, args.loss);
}
template <class T, int lanes>
__global__ void __launch_bounds__(most_row_threads, 1)
    loss_ring_kernel(const __grid_constant__ LossArgs<RingArgs<1>> args) {
  extern __shared__ __align__(128) unsigned char memory[];
  Ring<T, lanes, 1> rows(args.in, memory);
  loss_rows<T, lanes, true>(rows, args.loss);
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::SoftmaxCrossEntropy& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  const DType dtype = in[0].dtype();
  const RowArray x = rows_of(cuda, in[0]);
  const RowPlan plan(call, dtype, x.count, x.length, row_lanes(dtype, x.length, {x.place()}));
  const Loss loss{Targets(call, in[1], op.ignore_index, x.length),
                  Strided(out[0]),
                  Strided(out[1]),
                  Strided(out[1]),
                  nullptr,
                  op.label_smoothing};
  // One pass: nothing is read twice, however long the rows.
  visit_floating(dtype, [&]<class T>() {
    const auto kernel =
        plan.lanes() > 1 ? loss_kernel<T, pack_lanes<T>, false, false> : loss_kernel<T, 1, false, false>;
    plan.launch(kernel, {{plan.shape(), {x.place()}}, loss});
  });
  call.finish();
}

void run(Cuda& cuda, const op::SoftmaxCrossEntropyWithGradient& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  const DType dtype = out[1].dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const RowArray x = rows_of(cuda, in[0]);
  const Array scale = in[2].dtype() == wide ? in[2] : dense(cuda, in[2], wide);
  Destination gradient(cuda, out[1], false);
  const int lanes = row_lanes(dtype, x.length, {x.place(), {gradient.array().data(), x.length}});
  RowsOrRingPlan plan(call, dtype, x.count, x.length, lanes, {1});
  const Loss loss{Targets(call, in[1], op.ignore_index, x.length),
                  Strided(out[0]),
                  Strided(out[0]),
                  Strided(scale),
                  gradient.array().data(),
                  op.label_smoothing};
  visit_floating(dtype, [&]<class T>() {
    plan.visit<T>(
        [&]<int n, bool resident>(const RowPlan& rows) {
          rows.launch(loss_kernel<T, n, resident, true>, {{rows.shape(), {x.place()}}, loss});
        },
        [&]<int n>(RingPlan& ring) {
          ring.fit(loss_ring_kernel<T, n>);
          ring.launch(loss_ring_kernel<T, n>, {{ring.shape(), {x.place()}}, loss});
        });
  });
  gradient.commit();
  call.finish();
}

}  // namespace ferrite
