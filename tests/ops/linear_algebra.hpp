// Linear algebra on backends by name: what the factors promise, matrices that have none, and sizes on both
// sides of where LAPACK takes over. The conformance suite compares backends and checks gradients. For the
// CPU's backends in tests/ops/, for the GPU's in tests/backend_cuda/.
#pragma once

#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/ops/cholesky.hpp"
#include "ferrite/ops/einsum.hpp"
#include "ferrite/ops/svd.hpp"
#include "ferrite/stacks.hpp"
#include "messages.hpp"

namespace ferrite::linear_algebra_tests {

using testing::message_of;

using T = Tensor<AnyBackend>;

class LinearAlgebra : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (needs_missing_gpu()) GTEST_SKIP() << cuda_unavailable_reason();
  }
  static bool needs_missing_gpu() {
    return std::string_view(GetParam()).find("cuda") != std::string_view::npos && cuda_device_count() == 0;
  }
  /// Which take seconds for what LAPACK does at once.
  static bool runs_plain_loops() {
    const std::string_view name = GetParam();
    return name == "reference" || name.find("parity") != std::string_view::npos;
  }
  AnyBackend b{needs_missing_gpu() ? "cpu" : GetParam()};
  Rng rng{7};
  T random(const Shape& shape, DType dtype = DType::f64) { return randn(b, shape, rng, 0, 1, dtype); }
  T from(const std::vector<double>& values, const Shape& shape) { return from_vector(b, values, shape); }
};

inline T turned(const T& x) { return transpose(x, -1, -2); }
inline double distance(const T& x, const T& y) { return max(abs(x - y)).item<double>(); }
inline T positive_definite(const T& x) {
  return matmul(x, turned(x)) + eye(x.backend(), x.size(-1), x.dtype());
}

TEST_P(LinearAlgebra, FactorsGiveTheMatrixAgain) {
  for (const std::int64_t n : {1, 5, 40, 100}) {  // LAPACK takes over from 96 on
    if (n > 40 && runs_plain_loops()) continue;
    const T x = random({2, n, n}), a = positive_definite(x);
    const double bound = 1e-12 * static_cast<double>(n * n);
    const T l = cholesky(a);
    EXPECT_LT(distance(matmul(l, turned(l)), a), bound) << n;
    EXPECT_EQ(distance(triu(l, 1), zeros_like(l)), 0);
    const auto factors = lu(x);
    const T rows = op::Lu::reorder(x, factors.order);
    EXPECT_LT(distance(matmul(factors.lower, factors.upper), rows), bound) << n;
    const auto [values, vectors] = eigh(a);
    EXPECT_LT(distance(matmul(vectors * unsqueeze(values, -2), turned(vectors)), a), bound) << n;
    EXPECT_LT(distance(matmul(turned(vectors), vectors), eye(b, n, DType::f64)), bound) << n;
  }
}

TEST_P(LinearAlgebra, TallAndWideMatrices) {
  for (const auto& [m, n] : {std::pair{7, 3}, {3, 7}, {120, 100}, {100, 120}}) {
    if (m > 40 && runs_plain_loops()) continue;
    const std::int64_t k = std::min(m, n);
    const T a = random({m, n});
    const auto [q, r] = qr(a);
    EXPECT_EQ(q.shape(), (Shape{m, k}));
    EXPECT_LT(distance(matmul(q, r), a), 1e-11);
    EXPECT_LT(distance(matmul(turned(q), q), eye(b, k, DType::f64)), 1e-12);
    const auto [u, s, vt] = svd(a);
    EXPECT_LT(distance(matmul(u * unsqueeze(s, -2), vt), a), 1e-11);
    EXPECT_LT(distance(matmul(turned(u), u), eye(b, k, DType::f64)), 1e-12);
    EXPECT_LT(distance(matmul(vt, turned(vt)), eye(b, k, DType::f64)), 1e-12);
    const T inverse_of_a = pinv(a);
    EXPECT_LT(distance(matmul(a, matmul(inverse_of_a, a)), a), 1e-10);
    const T right = random({m, 2});
    EXPECT_LT(distance(lstsq(a, right), matmul(inverse_of_a, right)), 1e-11);
    const auto [lower, upper, order] = lu(a);
    EXPECT_EQ(lower.shape(), (Shape{m, k}));
    EXPECT_LT(distance(matmul(lower, upper), op::Lu::reorder(a, order)), 1e-11);
  }
}

TEST_P(LinearAlgebra, SolvesWithOneOrManyRightSides) {
  for (const std::int64_t n : {3, 120})
    for (const std::int64_t k : {1, 4, 30}) {
      const T a = random({2, n, n}), x = random({2, n, k});
      EXPECT_LT(distance(solve(a, matmul(a, x)), x), 1e-9) << n << " " << k;
    }
  const T a = random({4, 4}), v = random({4});
  EXPECT_EQ(solve(a, v).shape(), (Shape{4}));
  EXPECT_LT(distance(matmul(inverse(a), a), eye(b, 4, DType::f64)), 1e-12);
  EXPECT_EQ(solve(a, random({3, 4, 1})).shape(), (Shape{3, 4, 1}));  // one matrix, three right sides
}

TEST_P(LinearAlgebra, OneTriangleIsRead) {
  const T x = random({4, 4}), a = positive_definite(x);
  const T spoiled = where(triu(ones_like(a), 1) > 0, std::numeric_limits<double>::quiet_NaN(), a);
  EXPECT_EQ(distance(cholesky(spoiled), cholesky(a)), 0);
  EXPECT_EQ(distance(triangular_solve(spoiled, x), triangular_solve(a, x)), 0);
  EXPECT_EQ(distance(eigh(spoiled).values, eigh(a).values), 0);
}

TEST_P(LinearAlgebra, DeterminantsOfKnownMatrices) {
  const T swap = from({0, 1, 1, 0}, {2, 2}), singular = from({1, 2, 2, 4}, {2, 2});
  EXPECT_EQ(det(swap).item<double>(), -1);
  EXPECT_EQ(det(singular).item<double>(), 0);
  EXPECT_EQ(slogdet(singular).sign.item<double>(), 0);
  EXPECT_EQ(slogdet(singular).logarithm.item<double>(), -std::numeric_limits<double>::infinity());
  const T large = eye(b, 300, DType::f64) * 1e10;  // det leaves the range, its logarithm does not
  EXPECT_NEAR(slogdet(large).logarithm.item<double>(), 300 * std::log(1e10), 1e-9);
  EXPECT_EQ(det(eye(b, 0, DType::f64)).item<double>(), 1);
}

TEST_P(LinearAlgebra, ErrorsNameTheMatrixOfTheBatch) {
  const T ok = eye(b, 2, DType::f64), bad = from({1, 2, 2, 4}, {2, 2});
  const T batch = reshape(cat<AnyBackend>({ok, ok, ok, bad, ok, bad}, 0), {2, 3, 2, 2});
  const T right = random({2, 3, 2, 1});
  EXPECT_NE(
      message_of<ValueError>([&] { solve(batch, right); }).find("[solve] matrix [1, 0] of the batch [2, 3]"),
      std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { inverse(batch); }).find("[inverse]"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] {
              cholesky(-batch);
            }).find("matrix [0, 0] of the batch [2, 3] is not positive"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { triangular_solve(bad - bad, ok); }).find("singular"),
            std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] { cholesky(random({2, 3})); }).find("square"), std::string::npos);
  EXPECT_NE(message_of<DTypeError>([&] { svd(cast(ok, DType::f16)); }).find("needs f32 or f64"),
            std::string::npos);
  EXPECT_THROW(solve(ok, random({3, 1})), ShapeError);
}

TEST_P(LinearAlgebra, ErrorsOfFactorsNameTheMatrixOfTheBatch) {
  const auto second_of_three = [](const T& good, const T& bad) {
    return reshape(cat<AnyBackend>({good, bad, good}, 0), {3, good.size(-2), good.size(-1)});
  };
  const auto expect_named = [](const std::string& message, const std::string& start) {
    EXPECT_NE(message.find(start), std::string::npos) << message;
  };
  const T ok = eye(b, 2, DType::f64);
  const T spoiled = second_of_three(ok, where(ok > 0, std::numeric_limits<double>::quiet_NaN(), ok));
  expect_named(message_of<ValueError>([&] { eigh(spoiled); }),
               "[eigh] matrix [1] of the batch [3] is not finite");
  expect_named(message_of<ValueError>([&] { svd(spoiled); }),
               "[svd] matrix [1] of the batch [3] is not finite");
  const T tall = second_of_three(from({1, 0, 0, 1, 0, 0}, {3, 2}), from({1, 2, 2, 4, 3, 6}, {3, 2}));
  const std::string refused = "[lstsq] matrix [1] of the batch [3] is of less than full rank";
  expect_named(message_of<ValueError>([&] { lstsq(tall, ones(b, {3, 3, 1}, DType::f64)); }), refused);
  expect_named(message_of<ValueError>([&] { lstsq(turned(tall), ones(b, {3, 2, 1}, DType::f64)); }), refused);
}

TEST_P(LinearAlgebra, NumbersThatAreNotFiniteAreErrors) {
  const T a =
      where(eye(b, 3, DType::f64) > 0, std::numeric_limits<double>::quiet_NaN(), ones(b, {3, 3}, DType::f64));
  const T large = where(eye(b, 100, DType::f64) > 0, std::numeric_limits<double>::quiet_NaN(),
                        ones(b, {100, 100}, DType::f64));
  for (const T& x : {a, large}) {
    EXPECT_THROW(cholesky(x), ValueError);
    EXPECT_THROW(eigh(x), ValueError);
    EXPECT_THROW(svd(x), ValueError);
  }
}

TEST_P(LinearAlgebra, MagnitudesDoNotMatter) {
  for (const double scale : {1e-30, 1e-20, 1e10, 1e20, 1e30}) {  // squares leave the range of f32
    const T a = random({2, 3, 3}, DType::f32) * scale;
    const T one = eye(b, 3, DType::f32);
    const auto relative = [&](const T& x) { return distance(x, a) / scale; };
    const auto [u, s, vt] = svd(a);
    EXPECT_LT(distance(matmul(turned(u), u), one), 1e-5) << scale;
    EXPECT_LT(relative(matmul(u * unsqueeze(s, -2), vt)), 1e-5) << scale;
    const auto [q, r] = qr(a);
    EXPECT_LT(distance(matmul(turned(q), q), one), 1e-5) << scale;
    EXPECT_LT(relative(matmul(q, r)), 1e-5) << scale;
    const auto [values, vectors] = eigh(a + turned(a));
    EXPECT_LT(distance(matmul(turned(vectors), vectors), one), 1e-5) << scale;
  }
}

TEST_P(LinearAlgebra, AColumnMayBeTinyBesideTheOthers) {
  const T a = random({3, 6, 4}, DType::f32);
  for (const double scale : {1e-18, 1e-21, 1e-22, 1e-30}) {
    const T sizes = cast(from({scale, 1, 1, 1}, {4}), DType::f32);
    const auto [q, r] = qr(a * sizes);
    EXPECT_LT(distance(matmul(turned(q), q), eye(b, 4, DType::f32)), 1e-5) << scale;
    EXPECT_LT(distance(matmul(q, r), a * sizes), 1e-5) << scale;
  }
}

TEST_P(LinearAlgebra, SignsAgreeWhereElementsAreEqualInSize) {
  const T rows = unsqueeze(arange(b, 6), -1), columns = arange(b, 6);
  const T second_differences =
      cast(2 * cast(rows == columns, DType::i64), DType::f64) - cast(abs(rows - columns) == 1, DType::f64);
  const T vectors = eigh(second_differences).vectors;
  EXPECT_TRUE(all(slice(vectors, 0, 1, 3) * slice(flip(vectors, {0}), 0, 1, 3) != 0).item<bool>());
  AnyBackend reference("reference");
  const auto expected = eigh(to(reference, second_differences)).vectors.to_vector<double>();
  const auto found = vectors.to_vector<double>();
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

TEST_P(LinearAlgebra, EmptyMatrices) {
  for (const Shape& shape : {Shape{0, 0}, Shape{3, 0}, Shape{0, 3}, Shape{2, 0, 3}, Shape{2, 3, 0}}) {
    const T a = zeros(b, shape, DType::f64);
    EXPECT_EQ(pinv(a).shape(), turned(a).shape());
    EXPECT_EQ(svd(a).s.size(-1), 0);
    EXPECT_EQ(qr(a).r.size(-1), a.size(-1));
    EXPECT_EQ(lu(a).lower.size(-2), a.size(-2));
    EXPECT_EQ(lstsq(a, zeros(b, {a.size(-2), 2}, DType::f64)).size(-2), a.size(-1));
  }
}

TEST_P(LinearAlgebra, GradientOfTheRotationInAMatrixWithEqualSingularValues) {
  Autodiff<AnyBackend> d(b);
  const auto a = parameter(eye(d, 3, DType::f64), "a");
  const T w = random({3, 3});
  const auto weights = from_vector(d, w.to_vector<double>(), {3, 3});
  const auto [u, s, vt] = svd(a);
  const T gradient = sum(weights * matmul(u, vt)).backward().of(a);
  EXPECT_LT(distance(gradient, 0.5 * (w - turned(w))), 1e-14);
}

TEST_P(LinearAlgebra, RankDeficientMatrices) {
  const T a = from({1, 2, 2, 4, 3, 6}, {3, 2});
  const auto [u, s, vt] = svd(a);
  EXPECT_NEAR(slice(s, 0, 1, 2).item<double>(), 0, 1e-15);
  EXPECT_LT(distance(matmul(turned(u), u), eye(b, 2, DType::f64)), 1e-14);
  EXPECT_LT(distance(matmul(a, matmul(pinv(a), a)), a), 1e-13);
  const std::string refused = message_of<ValueError>([&] { lstsq(a, ones(b, {3, 1}, DType::f64)); });
  EXPECT_NE(refused.find("[lstsq] the matrix is of less than full rank"), std::string::npos) << refused;
  const auto zero = svd(zeros(b, {3, 2}, DType::f64));
  EXPECT_LT(distance(matmul(turned(zero.u), zero.u), eye(b, 2, DType::f64)), 1e-14);
}

TEST_P(LinearAlgebra, NormsOfAKnownMatrix) {
  const T a = from({3, 0, -4, 0, 5, 0}, {2, 3});
  EXPECT_NEAR(matrix_norm(a).item<double>(), std::sqrt(50.0), 1e-14);
  EXPECT_NEAR(matrix_norm(a, MatrixNorm::nuclear).item<double>(), 10, 1e-14);
  EXPECT_NEAR(matrix_norm(a, MatrixNorm::spectral).item<double>(), 5, 1e-14);
  EXPECT_EQ(matrix_norm(a, MatrixNorm::one).item<double>(), 5);
  EXPECT_EQ(matrix_norm(a, MatrixNorm::infinity).item<double>(), 7);
}

TEST_P(LinearAlgebra, EinsumSaysWhatDoesNotFit) {
  const T x = random({2, 3}), y = random({3, 4});
  EXPECT_LT(distance(einsum("ij,jk", x, y), matmul(x, y)), 1e-15);
  EXPECT_LT(distance(einsum("ij->ji", x), turned(x)), 1e-15);
  EXPECT_THROW(einsum("ij,jk->ik", x), ValueError);
  EXPECT_THROW(einsum("ij,jk->iz", x, y), ValueError);
  EXPECT_THROW(einsum("ijk,jk->i", x, y), ShapeError);
  EXPECT_NE(message_of<ShapeError>([&] { einsum("ij,ij->ij", x, y); }).find("[einsum]"), std::string::npos);
}

TEST_P(LinearAlgebra, EinsumKeepsTheDTypeOfItsOperands) {
  const T bytes = ones(b, {20, 20}, DType::u8), ints = ones(b, {4}, DType::i32);
  EXPECT_EQ(einsum("ij->", bytes).dtype(), DType::u8);
  EXPECT_EQ(einsum("ij->", bytes).item<int>(), 400 % 256);
  EXPECT_EQ(einsum("ij,ij->", bytes, bytes).item<int>(), 400 % 256);
  EXPECT_EQ(einsum("i,j->", ints, ints).dtype(), DType::i32);
  EXPECT_EQ(einsum("i,j->", ints, ones(b, {2}, DType::f64)).dtype(), DType::f64);
  const T some = from_vector(b, std::vector<bool>{true, false, true, false});
  EXPECT_EQ(einsum("i,i->", some, some).dtype(), DType::bool_);
  EXPECT_EQ(einsum("i,i->", some, some).item<int>(), 1);
}

TEST_P(LinearAlgebra, OutputsMayBeViewsAndInputsTransposed) {
  const T x = random({3, 4, 4}), a = positive_definite(x);
  EXPECT_LT(distance(solve(turned(a), x), solve(clone(turned(a)), x)), 1e-12);
  EXPECT_LT(distance(svd(turned(x)).s, svd(x).s), 1e-13);
  EXPECT_LT(distance(eigh(expand(slice(a, 0, 0, 1), {3, 4, 4})).values,
                     expand(eigh(slice(a, 0, 0, 1)).values, {3, 4})),
            1e-14);
}

}  // namespace ferrite::linear_algebra_tests
