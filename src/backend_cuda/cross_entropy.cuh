// What the kernels of softmax_cross_entropy share: the classes that rows should have, and the gradient of one
// row.
#pragma once

#include "backend_cuda/ring.cuh"

namespace ferrite::cuda {

/// A one-dimensional array of any stride, or of none: one element for all.
struct Strided {
  void* data;
  std::int64_t stride;
  explicit Strided(const Array& x)
      : data(x.data()), stride(x.shape().rank() == 0 ? 0 : x.layout().strides[0]) {}

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
  __device__ __forceinline__ void report_if_wrong(std::int64_t row, std::int64_t target) const {
    if (target == ignore_index || (target >= 0 && target < count)) return;
    fault->op_length = op_length;
    fault->index = target;
    fault->extent = count;
    fault->position = row + 1;
    __threadfence_system();
    fault->op = reinterpret_cast<unsigned long long>(op);
  }
};

/// dx = dloss (softmax(x) - target distribution), for one row. log(softmax(x)) = x - shift - log_sum, in this
/// order: near certainty x is close to both the largest logit and the lse.
template <class T>
struct RowGradient {
  using C = Compute<T>;
  std::int64_t target;
  bool ignored;
  C shift, log_sum, dloss, smoothing, offset;

  __device__ __forceinline__ RowGradient(const Targets& targets, std::int64_t row_target, C row_shift,
                                         C row_log_sum, C row_dloss, C label_smoothing)
      : target(row_target),
        ignored(row_target == targets.ignore_index),
        shift(row_shift),
        log_sum(row_log_sum),
        dloss(row_dloss),
        smoothing(label_smoothing),
        offset(label_smoothing / static_cast<C>(targets.count) * row_dloss) {}

  template <int lanes, class Index>
  __device__ __forceinline__ Wide<C, lanes> of(Index pack, Wide<C, lanes> x) const {
    const std::int64_t lane = target - static_cast<std::int64_t>(pack) * lanes;
    const bool has_target = lane >= 0 && lane < lanes;
    C at_target = 0;
    if (has_target) {
#pragma unroll
      for (int j = 0; j < lanes; ++j)
        if (j == lane) at_target = x.of[j];
      // p - 1 as expm1: near certainty the difference of the two would keep only rounding errors.
      at_target = (std::expm1(at_target - shift - log_sum) + smoothing) * dloss - offset;
    }
#pragma unroll
    for (int j = 0; j < lanes; ++j) {
      x.of[j] = exp_for<T>(x.of[j] - shift - log_sum) * dloss - offset;
      if (has_target && j == lane) x.of[j] = at_target;
      if (ignored) x.of[j] = 0;
    }
    return x;
  }
};

}  // namespace ferrite::cuda
