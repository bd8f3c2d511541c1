// Shared by the kernels of softmax_cross_entropy: the target classes of rows, and the gradient of one row.
#pragma once

#include "backend_cuda/kit/indices.cuh"
#include "backend_cuda/kit/ring.cuh"

namespace ferrite::cuda {

/// A one-dimensional array of any stride, or a single element for all.
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
  FaultReport report;

  Targets(const Call& call, const Array& targets, std::int64_t ignored, std::int64_t classes_count)
      : classes(targets), dtype(targets.dtype()), ignore_index(ignored), count(classes_count), report(call) {}

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
  __device__ __forceinline__ void report_if_wrong(std::int64_t row, std::int64_t target) const {
    if (target != ignore_index && !is_class(target)) report(target, count, row + 1);
  }
};

/// dx = dloss (p - target distribution), for one row of p = softmax(x).
template <class T>
struct RowGradient {
  using C = Compute<T>;
  std::int64_t target;
  C shift, log_sum, dloss, smoothing, offset;

  /// Near certainty x is close to both the largest logit and the lse: 32-bit results take two steps.
  __device__ __forceinline__ C log_p(C x) const {
    return is_16_bit<T> ? x - (shift + log_sum) : x - shift - log_sum;
  }

  /// Near certainty, p - 1 for the class at `target` would keep only rounding errors: use error_of(x)
  /// instead.
  template <int lanes, class Index, class ErrorOf>
  __device__ __forceinline__ Wide<C, lanes> of(Index pack, const Wide<C, lanes>& x,
                                               ErrorOf&& error_of) const {
    Wide<C, lanes> dx;
#pragma unroll
    for (int j = 0; j < lanes; ++j) dx.of[j] = exp_for<T>(log_p(x.of[j])) * dloss - offset;
    const std::int64_t lane = target - static_cast<std::int64_t>(pack) * lanes;
    if (lane >= 0 && lane < lanes) {
#pragma unroll
      for (int j = 0; j < lanes; ++j)
        if (j == lane) dx.of[j] = (error_of(x.of[j]) + smoothing) * dloss - offset;
    }
    return dx;
  }
};

}  // namespace ferrite::cuda
