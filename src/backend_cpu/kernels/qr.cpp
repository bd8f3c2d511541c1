// qr on the CPU.
#include "ferrite/ops/qr.hpp"

#include <Eigen/QR>

#include "backend_cpu/linalg/lapack.hpp"
#include "backend_cpu/linalg/matrices.hpp"

namespace ferrite {

using namespace cpu;

namespace {

template <class T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// q [m, k] and r [k, n] of a [m, n], of any signs.
template <class T>
void factorize_qr(const ConstMatrixMap<T>& a, MatrixMap<T> q, MatrixMap<T> r) {
  const auto m = a.rows(), n = a.cols(), k = q.cols();
  if (const Lapack<T>* const lapack = k < least_for_lapack ? nullptr : Lapack<T>::get()) {
    Columns<T> factors = a;
    std::vector<T> tau(static_cast<std::size_t>(k));
    lapack->geqrf(static_cast<int>(m), static_cast<int>(n), factors.data(), tau.data());
    r = factors.topRows(k).template triangularView<Eigen::Upper>();
    lapack->orgqr(static_cast<int>(m), static_cast<int>(k), static_cast<int>(k), factors.data(), tau.data());
    q = factors.leftCols(k);
    return;
  }
  const T scale = detail::power_of_two_above(a.data(), m * n);  // Eigen squares elements
  const Eigen::HouseholderQR<Columns<T>> factors(a / scale);
  r = factors.matrixQR().topRows(k).template triangularView<Eigen::Upper>();
  r *= scale;
  q = factors.householderQ() * Columns<T>::Identity(m, k);
}

}  // namespace

void run(Cpu& cpu, const op::Qr& op, Ins in, Outs out) {
  visit_real(in[0].dtype(), [&]<class T>() {
    const Array a = dense(cpu, in[0]);
    Destination packed(cpu, out[0], false);
    const Shape& shape = a.shape();
    const std::int64_t m = shape[shape.rank() - 2], n = shape.back(), k = std::min(m, n);
    for_matrices(op.type_name, detail::batch_of(shape), k, "", [&](std::int64_t i) {
      T* const first = packed.array().data<T>() + i * (m + n) * k;
      MatrixMap<T> q(first, m, k), r(first + m * k, k, n);
      factorize_qr<T>(ConstMatrixMap<T>(a.data<T>() + i * m * n, m, n), q, r);
      for (std::int64_t row = 0; row < k; ++row) {
        if (r(row, row) >= 0) continue;
        r.row(row) = -r.row(row);
        q.col(row) = -q.col(row);
      }
      return true;
    });
    packed.commit();
  });
}

}  // namespace ferrite
