// argmax and argmin of floats.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_float_place(const Call& call, const AxisReduction& reduction, Extreme extreme) {
  visit_floating(reduction.in.dtype(),
                 [&]<class T>() { reduce(call, reduction, ArgExtremum<T>{Ordered<T>::of(extreme)}); });
}

}  // namespace ferrite::cuda
