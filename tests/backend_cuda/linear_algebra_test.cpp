// Linear algebra on the GPU.
#include "ops/linear_algebra.hpp"
#include "ferrite/backend/cuda_graph.hpp"

namespace ferrite::linear_algebra_tests {
INSTANTIATE_TEST_SUITE_P(OnTheGpu, LinearAlgebra, ::testing::Values("cuda", "lazy-cuda", "cuda-parity"));

/// Batches and sizes on both sides of where another call of cuSOLVER, or a kernel of ours, takes over.
TEST_P(LinearAlgebra, BatchesGiveTheMatricesAgain) {
  // Parity evaluates every call some ten times by plain loops.
  const bool is_parity = std::string_view(GetParam()).find("parity") != std::string_view::npos;
  for (const auto& [count, m, n] :
       {std::tuple{300, 16, 16}, {5, 33, 31}, {3, 70, 64}, {7, 20, 32}, {2, 300, 260}}) {
    if (is_parity && m > 70) continue;
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

TEST(LinearAlgebraInAGraph, OpsThatWaitSayThatTheyCannotBeCaptured) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  Cuda cuda;
  const Tensor<Cuda> a = eye(cuda, 4);
  try {
    CudaGraph::capture(cuda, [&] { cholesky(a); });
    FAIL() << "it was captured";
  } catch (const BackendError& e) {
    EXPECT_NE(std::string(e.what()).find("[cholesky] waits for the GPU"), std::string::npos) << e.what();
  }
  EXPECT_EQ(sum(cholesky(a)).item<double>(), 4);  // the GPU still works
}
}  // namespace ferrite::linear_algebra_tests
