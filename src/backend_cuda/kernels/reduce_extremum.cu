// max, min and the largest magnitude.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_extremum(const Call& call, const AxisReduction& reduction, Extreme extreme) {
  visit_device_type(reduction.in.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      reduce(call, reduction, Extremum<T>{Ordered<T>::of(extreme)});
    }
  });
}

}  // namespace ferrite::cuda
