// Sums, means and norms of floats.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_float_sum(const Call& call, const AxisReduction& reduction, Term term, double divisor, bool root,
                      bool add) {
  visit_floating(reduction.in.dtype(), [&]<class T>() {
    if constexpr (sizeof(T) == 2)
      if (reduction.out.dtype() == DType::f32)
        return reduce(call, reduction, FloatSum<T, float>{divisor, term, root}, add);
    reduce(call, reduction, FloatSum<T>{divisor, term, root}, add);
  });
}

}  // namespace ferrite::cuda
