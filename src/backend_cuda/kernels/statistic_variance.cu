// Variances.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_variance(const Call& call, const AxisReduction& reduction, double correction) {
  visit_floating(reduction.in.dtype(), [&]<class T>() { reduce(call, reduction, Variance<T>{correction}); });
}

}  // namespace ferrite::cuda
