// What every backend must get right at the edges of dtypes: one rounding, no intermediate that leaves the
// range where the result does not, 0 where a gradient is 0. For the CPU's backends in tests/ops/, for the
// GPU's in tests/backend_cuda/.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::range_tests {

class Range : public ::testing::TestWithParam<const char*> {
 protected:
  using B = AnyBackend;
  using D = Autodiff<AnyBackend>;
  void SetUp() override {
    const bool on_gpu = std::string_view(GetParam()).find("cuda") != std::string_view::npos;
    if (on_gpu && cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }

  static Tensor<D> leaf(D& b, const std::vector<double>& values, DType dtype, const Shape& shape = {}) {
    const Shape extents = shape.empty() ? Shape{static_cast<std::int64_t>(values.size())} : shape;
    return parameter(cast(from_vector(b, values, extents), dtype), "x");
  }
  static std::vector<double> gradient(const Tensor<D>& y, const Tensor<D>& x) {
    return sum(y).backward().of(x).to_vector<double>();
  }
  static Tensor<B> make(B& b, const std::vector<double>& values, DType dtype, const Shape& shape) {
    return cast(from_vector(b, values, shape), dtype);
  }
};

TEST_P(Range, DivisionByLargeAndSmallNumbersHasItsGradient) {
  D b(GetParam());
  const auto a = leaf(b, {1000}, DType::f16), d = leaf(b, {300}, DType::f16);
  EXPECT_NEAR(gradient(a / d, d)[0], -1000.0 / 90000, 1e-5);
  const auto x = leaf(b, {1e20}, DType::f32);
  const auto y = leaf(b, {1e30}, DType::f32);
  EXPECT_NEAR(gradient(y / x, x)[0], -1e-10, 1e-15);
  EXPECT_NEAR(gradient(1e30 / x, x)[0], -1e-10, 1e-15);
  const auto u = leaf(b, {3e25}, DType::f32), v = leaf(b, {4e25}, DType::f32);
  EXPECT_NEAR(gradient(atan2(u, v), u)[0] / 1.6e-26, 1, 1e-5);
}

TEST_P(Range, ABiasIsAddedBeforeTheRounding) {
  B b(GetParam());
  const auto x = make(b, {256}, DType::f16, {1, 1}), bias = make(b, {-10000}, DType::f16, {1});
  EXPECT_EQ(linear(x, x, bias).to_vector<double>()[0], 55552);
  const auto image = reshape(x, {1, 1, 1, 1});
  EXPECT_EQ(conv2d(image, image, bias).to_vector<double>()[0], 55552);
  const auto one = make(b, {1.0078125}, DType::bf16, {1, 1}), less = make(b, {-1.015625}, DType::bf16, {1});
  EXPECT_EQ(linear(one, one, less).to_vector<double>()[0], 0x1p-14);
}

TEST_P(Range, OpsOf16BitsRoundOnce) {
  B b(GetParam());
  const auto zeros_of_f16 = zeros(b, {70000}, DType::f16);
  EXPECT_NEAR(softmax(zeros_of_f16).to_vector<double>()[0], 1.0 / 70000, 1e-7);
  EXPECT_NEAR(log_softmax(zeros_of_f16).to_vector<double>()[0], -std::log(70000.0), 1e-2);
  const auto large = make(b, std::vector<double>(4, 40000), DType::f16, {1, 1, 2, 2});
  EXPECT_EQ(avg_pool2d(large, PoolConfig(2)).to_vector<double>()[0], 40000);
  const auto near = make(b, {300}, DType::f16, {1}), far = make(b, {-60}, DType::f16, {1});
  EXPECT_EQ(huber_loss(near, far).to_vector<double>()[0], 359.5);
  D d(GetParam());
  const auto x = leaf(d, {300, -300}, DType::f16);
  EXPECT_EQ(gradient(gelu(x), x), (std::vector<double>{1, 0}));
  EXPECT_EQ(gradient(silu(x), x)[0], 1);
}

TEST_P(Range, GatesOfNegativeNumbersEndWhereTheResultDoes) {
  B b(GetParam());
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (const double x : {-88.0, -90.0, -10.04}) {  // where sigmoid alone is denormal, or nearly so
    const auto t = make(b, {x}, DType::f32, {1});
    const double given = t.to_vector<double>()[0];
    const double u = 1.5957691216057308 * (given + 0.044715 * given * given * given);
    if (x < -80) {
      EXPECT_NEAR(silu(t).to_vector<double>()[0] / (given * sigmoid_of(given)), 1, 1e-4);
    } else {
      EXPECT_NEAR(gelu(t).to_vector<double>()[0] / (given * sigmoid_of(u)), 1, 1e-4);
    }
  }
}

TEST_P(Range, GradientsThatAreZeroAreNotNaN) {
  D b(GetParam());
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const auto x = leaf(b, {0, 2}, dtype), e = leaf(b, {0, 0}, dtype);
    EXPECT_EQ(gradient(pow(x, 0), x), (std::vector<double>{0, 0}));
    EXPECT_EQ(gradient(pow(x, e), x), (std::vector<double>{0, 0}));
    EXPECT_EQ(gradient(pow(x, e), e)[0], 0);
    EXPECT_EQ(gradient(pow(0.0, x), x), (std::vector<double>{0, 0}));
    const auto row = leaf(b, {0, 0, 3, 4}, dtype, {2, 2});
    const auto g = gradient(norm(row, 2, {1}), row);
    EXPECT_EQ(g[0], 0);
    EXPECT_EQ(g[1], 0);
    EXPECT_NEAR(g[2], 0.6, 1e-2);
  }
}

TEST_P(Range, MeansOfTheLargestNumbersAreNumbers) {
  B b(GetParam());
  const auto x = make(b, {3e38, 3e38, -3e38, 3e38}, DType::f32, {2, 2});
  EXPECT_NEAR(mean(x).to_vector<double>()[0] / 1.5e38, 1, 1e-6);
  EXPECT_NEAR(mean(x, {0}).to_vector<double>()[1] / 3e38, 1, 1e-6);
  EXPECT_TRUE(std::isinf(var(x, {1}).to_vector<double>()[1]));
}

TEST_P(Range, IntegerScalarsWrapToTheWidthOfTheTensor) {
  B b(GetParam());
  const auto x = from_vector(b, std::vector<std::uint8_t>{10, 250});
  const auto bytes = [](const Tensor<B>& t) { return t.to_vector<int>(); };
  EXPECT_EQ(bytes(x + -1), (std::vector<int>{9, 249}));
  EXPECT_EQ(bytes(x + 300), (std::vector<int>{54, 38}));
  EXPECT_EQ(bytes(where(x > 100, x, -1)), (std::vector<int>{255, 250}));
  EXPECT_EQ(bytes(full(b, {2}, -5, DType::u8)), (std::vector<int>{251, 251}));
  EXPECT_EQ(bytes(pad(x, {1}, {0}, 300)), (std::vector<int>{44, 10, 250}));
}

TEST_P(Range, MixedDtypesComputeInTheWidest) {
  D b(GetParam());
  const auto base = leaf(b, {1.0 + 1e-9}, DType::f64), exponent = leaf(b, {3}, DType::bf16);
  EXPECT_NEAR(gradient(pow(base, exponent), base)[0], 3 * std::pow(1 + 1e-9, 2), 1e-12);
  const auto x = leaf(b, {1}, DType::f32, {1, 1}), bias = leaf(b, {1e-9}, DType::f64);
  EXPECT_EQ(eval(op::Linear{}, x, x, bias).to_vector<double>()[0], 1 + 1e-9);
}

TEST_P(Range, TargetsOutsideTheClassesAreRefused) {
  B b(GetParam());
  const auto logits = zeros(b, {2, 3});
  for (const std::int64_t target : {-1, 3, 1000}) {
    const auto targets = from_vector(b, std::vector<std::int64_t>{0, target});
    EXPECT_THROW(
        {
          const auto loss = softmax_cross_entropy(logits, targets);
          static_cast<void>(loss.item());
        },
        ValueError)
        << target;
  }
}

}  // namespace ferrite::range_tests
