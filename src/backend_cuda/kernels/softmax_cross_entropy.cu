// softmax_cross_entropy, alone or with its gradient: the logits are read once, and the gradient follows from
// what is still in registers or shared memory. It may be written over the logits. The softmax is never
// stored.
#include "backend_cuda/kit/cross_entropy.cuh"
#include "backend_cuda/kit/cross_entropy.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct Loss {
  RowPlace logits;
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
  C chosen = 0, distances = 0;  // the logit of the target, the sum of how far all logits are from an origin

  /// is_marked: whether any of the packs may be unlike the others, or needs its distances.
  template <int lanes, class Each>
  __device__ __forceinline__ void add(Each&& each, const MarkedPacks<lanes>& marked, auto is_marked,
                                      bool needs_distances, C origin) {
    constexpr C none = -std::numeric_limits<C>::infinity();
    // 16-bit rows come in one pass. What is subtracted may be less than the largest, by a bit: a step down to
    // a slightly larger one would be needed often, in some lane of a warp at least.
    constexpr bool one_pass = is_16_bit<T>;
    constexpr C slack = 8;
    if constexpr (!one_pass) {
      if (is_marked && marked.has_padding)
        this->raise_to_all([&](auto&& g) {
          each([&](auto pack, int slot, auto x) {
            marked.replace_padding(pack, x, none);
            g(pack, slot, x);
          });
        });
      else
        this->raise_to_all(each);
    }
    C shift = this->shift_for(this->top);
    const auto raise_beyond_slack = [&](C highest) {
      if (highest > this->top + slack) {
        this->raise(highest);
        shift = this->shift_for(highest);
      }
    };
    const auto add_exps = [&](const Wide<C, lanes>& x) {
      if constexpr (one_pass) {
        C highest = x.of[0];
#pragma unroll
        for (int j = 1; j < lanes; ++j) highest = fmax(highest, x.of[j]);
        raise_beyond_slack(highest);
      }
#pragma unroll
      for (int j = 0; j < lanes; ++j) this->sum += exp_for<T>(x.of[j] - shift);
    };
    if (!is_marked) return each([&](auto, int, const auto& x) { add_exps(x); });
    each([&](auto pack, int, auto x) {
      if (needs_distances || marked.has(pack)) {
        if (needs_distances) {
          auto y = x;
          marked.replace_padding(pack, y, origin);
#pragma unroll
          for (int j = 0; j < lanes; ++j) distances += y.of[j] - origin;
        }
        marked.replace_padding(pack, x, none);
        marked.at_target(pack, [&](int j) {
          chosen = x.of[j];
          x.of[j] = none;
          if constexpr (one_pass) raise_beyond_slack(chosen);
        });
      }
      add_exps(x);
    });
  }
  __device__ __forceinline__ void across(int width) {
    MaxAndSum<T>::across(width);
    for (int distance = width / 2; distance > 0; distance /= 2) {
      chosen += from_lane_across(chosen, distance);
      distances += from_lane_across(distances, distance);
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
    const MarkedPacks<lanes> marked(targets, target);
    // Near the logits: a sum of large ones would lose the digits in which they differ.
    C origin = 0;
    if (smoothing != 0 && rows.active() && targets.is_class(target)) {
      const T* const row = static_cast<const T*>(args.logits.data) + rows.row() * args.logits.stride;
      origin = LossTotal<T>::shift_for(convert_to<C>(row[target]));
    }
    LossTotal<T> total;
    const auto is_marked = [&] {
      if constexpr (requires { rows.chunk(); })
        return smoothing != 0 || marked.has_any(rows.chunk());
      else
        return std::true_type();  // a ring has the whole row: the loop for the others would be dead weight
    };
    rows.pass(
        [&](auto each) { total.template add<lanes>(each, marked, is_marked(), smoothing != 0, origin); });
    total = rows.team().total(total);
    const C shift = total.shift_for(total.top), z = total.chosen - shift, others = total.sum;
    const C own = targets.is_class(target) ? std::exp(z) : C{0};
    const C sum = others + own, log_sum = std::log(sum);
    if (rows.team().is_first_thread() && rows.active()) {
      C loss = own > others && is_finite(own) ? std::log1p(others / own) : log_sum - z;
      if (smoothing != 0)
        loss += (log_sum - (total.distances / static_cast<C>(targets.count) + (origin - shift)) - loss) *
                smoothing;
      targets.report_if_wrong(rows.row(), target);
      args.loss.at<C>(rows.row()) = ignored ? C{0} : loss;
      if constexpr (!with_gradient) args.lse.at<C>(rows.row()) = log_sum + shift;
    }
    if constexpr (with_gradient) {
      const C scale = args.scale.at<C>(0);
      const RowGradient<T, lanes> gradient{
          marked, shift, log_sum, scale, smoothing, smoothing / static_cast<C>(targets.count) * scale};
      const C error = is_finite(sum) ? -others / sum : std::expm1(z - log_sum);
      T* const dx = static_cast<T*>(args.gradient) + rows.row() * targets.columns;
      rows.pass([&](auto each) {
        each([&](auto pack, int, const auto& x) {
          Wide<C, lanes> slope{};
          if (!ignored) slope = gradient.of(pack, x, [&](C) { return error; });
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

constexpr int counting_threads = 1024;

/// count: of the targets that are not ignored; reciprocal: one over that. For one block.
template <class T>
__global__ void __launch_bounds__(counting_threads)
    count_kernel(const __grid_constant__ Targets targets, std::int64_t rows, T* count, T* reciprocal) {
  int counted = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += counting_threads)
    counted += targets.read(i) != targets.ignore_index;
  counted = __reduce_add_sync(0xffffffff, counted);
  __shared__ int of_warps[counting_threads / 32];
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = counted;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const int all = __reduce_add_sync(0xffffffff, of_warps[threadIdx.x]);
  if (threadIdx.x > 0) return;
  *count = static_cast<T>(all);
  *reciprocal = 1 / static_cast<T>(all);
}

}  // namespace

void count_in_one_block(const Call& call, const Array& targets, std::int64_t ignore_index,
                        const CountedTargets& counted) {
  const Targets all(call, targets, ignore_index, 0, 0);
  const std::int64_t rows = targets.shape()[0];
  if (counted.count.dtype() == DType::f64)
    count_kernel<<<1, counting_threads, 0, call.stream()>>>(all, rows, counted.count.data<double>(),
                                                            counted.reciprocal.data<double>());
  else
    count_kernel<<<1, counting_threads, 0, call.stream()>>>(all, rows, counted.count.data<float>(),
                                                            counted.reciprocal.data<float>());
}

void run_rows(const Call& call, Cuda& cuda, const op::SoftmaxCrossEntropy& op, const LossRows& rows) {
  const DType dtype = rows.logits.dtype();
  const RowArray x = rows_of(cuda, rows.logits);
  const RowPlan plan(call, dtype, x.count, x.length, row_lanes(dtype, x.length, {x.place()}));
  const Loss loss{x.place(),
                  Targets(call, rows.targets, op.ignore_index, op::classes_of(x.length, op.classes), x.length,
                          rows.first),
                  Strided(rows.loss),
                  Strided(rows.lse),
                  Strided(rows.lse),
                  nullptr,
                  op.label_smoothing};
  // One pass: nothing is read twice, however long the rows.
  visit_floating(dtype, [&]<class T>() {
    const auto kernel =
        plan.lanes() > 1 ? loss_kernel<T, pack_lanes<T>, false, false> : loss_kernel<T, 1, false, false>;
    plan.launch(kernel, {{plan.shape(), {x.place()}}, loss});
  });
}

void run_rows(const Call& call, Cuda& cuda, const op::SoftmaxCrossEntropyWithGradient& op,
              const LossRows& rows) {
  const DType dtype = rows.gradient.dtype(), wide = wide_dtype(dtype);
  const RowArray x = rows_of(cuda, rows.logits);
  const Array scale = rows.scale.dtype() == wide ? rows.scale : dense(cuda, rows.scale, wide);
  Destination gradient(cuda, rows.gradient, false);
  const int lanes = row_lanes(dtype, x.length, {x.place(), {gradient.array().data(), x.length}});
  RowsOrRingPlan plan(call, dtype, x.count, x.length, lanes, {1});
  const Loss loss{x.place(),
                  Targets(call, rows.targets, op.ignore_index, op::classes_of(x.length, op.classes), x.length,
                          rows.first),
                  Strided(rows.loss),
                  Strided(rows.loss),
                  Strided(scale),
                  gradient.array().data(),
                  op.label_smoothing};
  visit_floating(dtype, [&]<class T>() {
    plan.visit<T>(
        [&]<int n, bool resident>(const RowPlan& some) {
          some.launch(loss_kernel<T, n, resident, true>, {{some.shape(), {x.place()}}, loss});
        },
        [&]<int n>(RingPlan& ring) {
          ring.fit(loss_ring_kernel<T, n>);
          ring.launch(loss_ring_kernel<T, n>, {{ring.shape(), {x.place()}}, loss});
        });
  });
  gradient.commit();
}

}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::SoftmaxCrossEntropy& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  run_rows(call, cuda, op, {.logits = in[0], .targets = in[1], .loss = out[0], .lse = out[1]});
  call.finish();
}

void run(Cuda& cuda, const op::SoftmaxCrossEntropyWithGradient& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  run_rows(call, cuda, op,
           {.logits = in[0], .targets = in[1], .loss = out[0], .scale = in[2], .gradient = out[1]});
  call.finish();
}

}  // namespace ferrite
