// cholesky by Eigen, and by LAPACK for large matrices.
#include "ferrite/ops/cholesky.hpp"

#include <Eigen/Cholesky>

#include "backend_cpu/linalg/lapack.hpp"
#include "backend_cpu/linalg/matrices.hpp"

namespace ferrite {

using namespace cpu;

void run(Cpu& cpu, const op::Cholesky&, Ins in, Outs out) {
  visit_real(in[0].dtype(), [&]<class T>() {
    const Array a = dense(cpu, in[0]);
    Destination l(cpu, out[0], false);
    const std::int64_t n = a.shape().back();
    const Lapack<T>* const lapack = n < least_for_lapack ? nullptr : Lapack<T>::get();
    for_matrices("cholesky", detail::batch_of(a.shape()), n, "not positive definite", [&](std::int64_t i) {
      const ConstMatrixMap<T> source(a.data<T>() + i * n * n, n, n);
      MatrixMap<T> target(l.array().data<T>() + i * n * n, n, n);
      target.setZero();
      target.template triangularView<Eigen::Lower>() = source;
      const bool done =
          lapack ? lapack->potrf('U', static_cast<int>(n), target.data()) == 0
                 : Eigen::LLT<Eigen::Ref<RowMatrix<T>>, Eigen::Lower>(target).info() == Eigen::Success;
      return done && (target.diagonal().array() > 0).all();  // both take NaN for a positive number
    });
    l.commit();
  });
}

}  // namespace ferrite
