// softmax_cross_entropy and its gradient. The forward reads the logits once; the backward reads them once
// more and writes the gradient, over the logits if the caller wants it so: an element is read before it is
// written, and by the same thread. The softmax is never stored.
#include "backend_cuda/rows.cuh"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite {
namespace cuda {
namespace {

/// A one-dimensional array of any stride.
struct Strided {
  void* data;
  std::int64_t stride;
  explicit Strided(const Array& x) : data(x.data()), stride(x.layout().strides[0]) {}

  template <class C>
  __device__ __forceinline__ C& at(std::int64_t i) const {
    return static_cast<C*>(data)[i * stride];
  }
};

struct Targets {
  Strided classes;
  DType dtype;
  std::int64_t ignore_index, count;  // of classes
  IndexFault* fault;
  const char* op;
  std::size_t op_length;

  Targets(const Call& call, const Array& targets, std::int64_t ignored, std::int64_t classes_count)
      : classes(targets),
        dtype(targets.dtype()),
        ignore_index(ignored),
        count(classes_count),
        fault(index_fault(call.context())),
        op(call.op().data()),
        op_length(call.op().size()) {}

  __device__ __forceinline__ std::int64_t read(std::int64_t row) const {
    switch (dtype) {
      case DType::i64:
        return classes.at<std::int64_t>(row);
      case DType::i32:
        return classes.at<std::int32_t>(row);
      default:
        return classes.at<std::uint8_t>(row);
    }
  }
  __device__ __forceinline__ bool is_class(std::int64_t target) const {
    return target >= 0 && target < count;
  }
  __device__ __forceinline__ void report_if_wrong(std::int64_t target) const {
    if (target == ignore_index || is_class(target)) return;
    fault->op_length = op_length;
    fault->index = target;
    fault->extent = count;
    __threadfence_system();
    fault->op = reinterpret_cast<unsigned long long>(op);
  }
};

struct CrossEntropyArgs {
  RowsArgs<1> rows;
  Targets targets;
  Strided loss, lse;
  double smoothing;
};

template <class T, int lanes>
__global__ void __launch_bounds__(RowPlan::most_threads, 2)
    cross_entropy_kernel(const __grid_constant__ CrossEntropyArgs args) {
  using C = Compute<T>;
  const Targets& targets = args.targets;
  const C smoothing = static_cast<C>(args.smoothing);
  Rows<T, lanes, 1> rows(args.rows);
  RowTeam& team = rows.team();
  std::int64_t next_target = targets.read(rows.row_ahead());
  while (rows.next()) {
    const std::int64_t target = next_target;
    next_target = targets.read(rows.row_ahead());
    const bool writes = team.is_first_thread() && rows.active();
    C chosen = 0;
    if (writes && targets.is_class(target))
      chosen = convert_to<C>(
          static_cast<const T*>(args.rows.in[0].data)[rows.row() * args.rows.in[0].stride + target]);

    MaxAndSum<T> total;
    Sums<C, 1> plain;
    rows.template pass<true>([&](auto each) {
      C top = total.top;
      each([&](int, std::int64_t, const auto& x) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) top = fmax(top, x.of[j]);
      });
      total.raise(top);
      const C shift = total.shift_for(top);
      each([&](int, std::int64_t, const auto& x) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) total.sum += exp_for<T>(x.of[j] - shift);
        if (smoothing == 0) return;
#pragma unroll
        for (int j = 0; j < lanes; ++j) plain.of[0] += x.of[j];
      });
    });
    total = team.total(total);
    if (smoothing != 0) plain = team.total(plain);
    if (!writes) continue;
    // Relative to the largest logit: near certainty the lse and the chosen logit are almost equal, and their
    // difference would keep only the rounding errors of both.
    const C shift = total.shift_for(total.top), log_sum = std::log(total.sum);
    C loss = log_sum - (chosen - shift) * (1 - smoothing);
    if (smoothing != 0) loss -= (plain.of[0] / static_cast<C>(targets.count) - shift) * smoothing;
    targets.report_if_wrong(target);
    args.loss.at<C>(rows.row()) = target == targets.ignore_index ? C{0} : loss;
    args.lse.at<C>(rows.row()) = log_sum + shift;
  }
}

struct GradientArgs {
  RowsArgs<1> rows;
  Targets targets;
  Strided dloss, lse;
  void* dx;
  double smoothing;
  bool add;
};

template <class T, int lanes>
__global__ void __launch_bounds__(RowPlan::most_threads, 2)
    cross_entropy_backward_kernel(const __grid_constant__ GradientArgs args) {
  using C = Compute<T>;
  struct Row {
    std::int64_t target;
    C dloss, lse;
  };
  const auto read = [&](std::int64_t row) {
    return Row{args.targets.read(row), args.dloss.at<C>(row), args.lse.at<C>(row)};
  };
  const C smoothing = static_cast<C>(args.smoothing);
  const C spread = smoothing / static_cast<C>(args.targets.count);
  Rows<T, lanes, 1> rows(args.rows);
  Row next = read(rows.row_ahead());
  while (rows.next()) {
    const Row row = next;
    next = read(rows.row_ahead());
    if (rows.team().is_first_thread() && rows.active()) args.targets.report_if_wrong(row.target);
    const bool ignored = row.target == args.targets.ignore_index;
    const C offset = spread * row.dloss;
    T* const dx = static_cast<T*>(args.dx) + rows.row() * args.rows.shape.length;
    rows.template pass<true>([&](auto each) {
      each([&](int, std::int64_t index, auto x) {
        const std::int64_t lane = row.target - index * lanes;
        const bool has_target = lane >= 0 && lane < lanes && !ignored;
        C at_target = 0;
        if (has_target) {
#pragma unroll
          for (int j = 0; j < lanes; ++j)
            if (j == lane) at_target = x.of[j];
          // p - 1 as expm1: near certainty the difference of the two would keep only rounding errors.
          at_target = (std::expm1(at_target - row.lse) + smoothing) * row.dloss - offset;
        }
#pragma unroll
        for (int j = 0; j < lanes; ++j) {
          x.of[j] = ignored ? C{0} : exp_for<T>(x.of[j] - row.lse) * row.dloss - offset;
          if (has_target && j == lane) x.of[j] = at_target;
        }
        write_pack<T, lanes>(dx, index, x, args.add);
      });
    });
  }
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void Cuda::run(const op::SoftmaxCrossEntropy& op, Ins in, Outs out) {
  const Call call(*this, op_name(op));
  const DType dtype = in[0].dtype();
  const RowArray x = rows_of(*this, in[0]);
  RowPlan plan(call, dtype, x.count, x.length, row_lanes(dtype, x.length, {x.place()}), 1);
  const CrossEntropyArgs args{{plan.shape(), {x.place()}},
                              Targets(call, in[1], op.ignore_index, x.length),
                              Strided(out[0]),
                              Strided(out[1]),
                              op.label_smoothing};
  visit_floating(dtype, [&]<class T>() {
    const auto kernel =
        plan.lanes() > 1 ? cross_entropy_kernel<T, pack_lanes<T>> : cross_entropy_kernel<T, 1>;
    plan.fit(kernel, 1024);
    plan.launch(kernel, args);
  });
  call.finish();
}

void Cuda::run(const op::SoftmaxCrossEntropyBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(*this, op_name(op));
  if (out[0].shape().numel() == 0) return;
  const DType dtype = out[0].dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto as_wide = [&](const Array& a) { return a.dtype() == wide ? a : dense(*this, a, wide); };
  const RowArray x = rows_of(*this, in[1], dtype);
  const Array dloss = as_wide(in[0]), lse = as_wide(in[3]);
  Destination dx(*this, out[0], accumulates(mask, 0));
  const int lanes = row_lanes(dtype, x.length, {x.place(), {dx.array().data(), x.length}});
  RowPlan plan(call, dtype, x.count, x.length, lanes, 1);
  // The last rows of the forward are still in the L2.
  const GradientArgs args{{plan.shape(), {x.place()}, true},
                          Targets(call, in[2], op.ignore_index, x.length),
                          Strided(dloss),
                          Strided(lse),
                          dx.array().data(),
                          op.label_smoothing,
                          dx.add()};
  visit_floating(dtype, [&]<class T>() {
    const auto kernel =
        lanes > 1 ? cross_entropy_backward_kernel<T, pack_lanes<T>> : cross_entropy_backward_kernel<T, 1>;
    plan.fit(kernel, 1024);
    plan.launch(kernel, args);
  });
  dx.commit();
  call.finish();
}

}  // namespace ferrite
