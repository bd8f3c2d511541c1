// logsumexp.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_logsumexp(const Call& call, const AxisReduction& reduction) {
  visit_floating(reduction.in.dtype(), [&]<class T>() { reduce(call, reduction, LogSumExp<T>{}); });
}

}  // namespace ferrite::cuda
