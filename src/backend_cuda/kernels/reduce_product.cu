// Products: rare, so read element by element.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_product(const Call& call, const AxisReduction& reduction) {
  visit_device_type(reduction.in.dtype(), [&]<class T>() {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    reduce(call, reduction, ElementProduct<T, Stored>{});
  });
}

}  // namespace ferrite::cuda
