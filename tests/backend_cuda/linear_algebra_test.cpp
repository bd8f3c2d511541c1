// Linear algebra on the GPU.
#include "ops/linear_algebra.hpp"

namespace ferrite::linear_algebra_tests {
INSTANTIATE_TEST_SUITE_P(OnTheGpu, LinearAlgebra, ::testing::Values("cuda", "lazy-cuda", "cuda-parity"));

/// Batches and sizes on both sides of where another call of cuSOLVER, or a kernel of ours, takes over.
TEST_P(LinearAlgebra, BatchesGiveTheMatricesAgain) {
  for (const auto& [count, m, n] :
       {std::tuple{300, 16, 16}, {5, 33, 31}, {3, 70, 64}, {7, 20, 32}, {2, 300, 260}}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const double bound = (dtype == DType::f32 ? 2e-6 : 4e-15) * static_cast<double>(m * n);
      const T a = random({count, m, n}, dtype);
      const auto [q, r] = qr(a);
      EXPECT_LT(distance(matmul(q, r), a), bound) << count << " x " << m << " x " << n;
      const auto [u, s, vt] = svd(a);
      EXPECT_LT(distance(matmul(u * unsqueeze(s, -2), vt), a), bound) << count << " x " << m << " x " << n;
      EXPECT_GE(min(slice(s, -1, 0, s.size(-1) - 1) - slice(s, -1, 1, s.size(-1))).item<double>(), 0);
      const T square = positive_definite(random({count, m, m}, dtype));
      const auto [values, vectors] = eigh(square);
      EXPECT_LT(distance(matmul(vectors * unsqueeze(values, -2), turned(vectors)), square), 10 * bound);
      const T right = random({count, m, 3}, dtype);
      EXPECT_LT(distance(matmul(square, solve(square, right)), right), 100 * bound);
      const T l = cholesky(square);
      EXPECT_LT(distance(matmul(l, turned(l)), square), 10 * bound);
    }
  }
}
}  // namespace ferrite::linear_algebra_tests
