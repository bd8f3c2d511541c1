// Pools on the GPU: against Reference, with ties, NaN and indices that no pooling would give.
#include "backend_cuda/contraction_support.hpp"

namespace ferrite::testing {
namespace {

struct CudaPool2d : CudaContraction {};

op::PoolGeometry geometry(Shape kernel, Shape stride, Shape padding) { return {kernel, stride, padding}; }

const std::vector<std::pair<Shape, op::PoolGeometry>> pool_cases = {
    {{2, 3, 8, 10}, geometry({2, 2}, {0, 0}, {0, 0})},  {{2, 3, 9, 11}, geometry({3, 3}, {2, 2}, {1, 1})},
    {{1, 2, 13, 7}, geometry({3, 2}, {1, 3}, {1, 0})},  {{1, 1, 5, 5}, geometry({5, 5}, {1, 1}, {2, 2})},
    {{3, 1, 40, 33}, geometry({2, 2}, {3, 3}, {1, 1})}, {{300, 4, 6, 6}, geometry({3, 3}, {1, 1}, {0, 0})},
    {{1, 1, 1, 1}, geometry({1, 1}, {0, 0}, {0, 0})}};

TEST_F(CudaPool2d, ForwardAndBackwardOfEveryDtype) {
  for (const DType dtype : floats) {
    for (const auto& [shape, g] : pool_cases) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(shape));
      // Few different values, so that many maxima are shared.
      const Gpu x = cast(cast(random(shape, DType::f64) * 3, DType::i32), dtype);
      const auto got = eval_all(op::MaxPool2d{g}, x);
      const auto want = eval_all(op::MaxPool2d{g}, truth(x));
      expect_near(got[0], want[0], 0);
      EXPECT_EQ(got[1].to_vector<std::int64_t>(), want[1].to_vector<std::int64_t>());
      const Gpu dy = random(got[0].shape(), dtype), old = random(shape, dtype);
      const Truth dx = eval(op::MaxPool2dBackward{shape}, truth(dy), want[1]);
      expect_near(eval(op::MaxPool2dBackward{shape}, dy, got[1]), dx, tolerance_of(dtype, 4));
      Truth sum = truth(old) + dx;
      run_into(*cuda, op::MaxPool2dBackward{shape}, {dy, got[1]}, {old}, 1);
      expect_near(old, sum, tolerance_of(dtype, 4));

      const Gpu real = random(shape, dtype);
      const double tolerance = tolerance_of(dtype, g.kernel.numel());
      expect_near(eval(op::AvgPool2d{g}, real), eval(op::AvgPool2d{g}, truth(real)), tolerance);
      const op::AvgPool2dBackward mean{g, shape};
      const Truth shares = eval(mean, truth(dy));
      expect_near(eval(mean, dy), shares, tolerance);
      sum = truth(old) + shares;
      run_into(*cuda, mean, {dy}, {old}, 1);
      expect_near(old, sum, 2 * tolerance);
    }
  }
}

TEST_F(CudaPool2d, LayoutsOfInputsAndOutputs) {
  const op::PoolGeometry g = geometry({3, 3}, {2, 2}, {1, 1});
  for (const auto& [name, x] : layouts(*this, {2, 3, 9, 8}, DType::f32)) {
    SCOPED_TRACE(name);
    const auto want = eval_all(op::MaxPool2d{g}, truth(x));
    const Gpu y = transpose(random({2, 3, 4, 5}), -1, -2),
              index = flip(zeros(*cuda, {2, 3, 5, 4}, DType::i64), {3});
    run_into(*cuda, op::MaxPool2d{g}, {x}, {y, index});
    expect_near(y, want[0], 0);
    EXPECT_EQ(index.to_vector<std::int64_t>(), want[1].to_vector<std::int64_t>());
    if (name == "one row repeated") continue;
    const Gpu dy = transpose(random({2, 3, 4, 5}), -1, -2);
    const Truth sum = truth(x) + eval(op::MaxPool2dBackward{x.shape()}, truth(dy), want[1]);
    run_into(*cuda, op::MaxPool2dBackward{x.shape()}, {dy, index}, {x}, 1);
    expect_near(x, sum, tolerance_of(DType::f32, 4));
  }
}

TEST_F(CudaPool2d, NaNIsTheMaximumAndMinusInfinityHasAPlace) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), low = -std::numeric_limits<double>::infinity();
  const std::vector<double> values = {1, nan, low, low, 2, nan, low, low};
  for (const DType dtype : floats) {
    const Gpu x = to(*cuda, cast(from_vector(host, values, {1, 1, 2, 4}), dtype));
    const auto pooled = eval_all(op::MaxPool2d{geometry({2, 2}, {0, 0}, {0, 0})}, x);
    const auto y = pooled[0].to_vector<double>();
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], low);
    EXPECT_EQ(pooled[1].to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2}));
  }
}

TEST_F(CudaPool2d, AnyIndicesWillDo) {
  const Shape shape{3, 2, 17, 19};
  const Gpu dy = random({3, 2, 11, 13});
  const Gpu index = to(*cuda, randint(host, dy.shape(), rng, 0, 17 * 19));
  expect_near(eval(op::MaxPool2dBackward{shape}, dy, index),
              eval(op::MaxPool2dBackward{shape}, truth(dy), to(host, index)), tolerance_of(DType::f32, 8));
  const Gpu same = zeros(*cuda, dy.shape(), DType::i64);
  expect_near(eval(op::MaxPool2dBackward{shape}, dy, same),
              eval(op::MaxPool2dBackward{shape}, truth(dy), to(host, same)), tolerance_of(DType::f32, 143));
}

TEST_F(CudaPool2d, OneLargePlane) {
  const op::PoolGeometry g = geometry({3, 3}, {2, 2}, {1, 1});
  const Gpu x = random({1, 1, 1500, 1100});
  const auto pooled = eval_all(op::MaxPool2d{g}, x);
  const Gpu dy = random(pooled[0].shape());
  const Gpu dx = eval(op::MaxPool2dBackward{x.shape()}, dy, pooled[1]);
  expect_near(pooled[0], eval(op::MaxPool2d{g}, truth(x)), 0);
  expect_near(dx, eval(op::MaxPool2dBackward{x.shape()}, truth(dy), to(host, pooled[1])),
              tolerance_of(DType::f32, 4));
}

TEST_F(CudaPool2d, AnIndexOutOfRangeIsAnErrorAndTheGpuWorksOn) {
  const Gpu dy = random({1, 1, 2, 2});
  for (const std::int64_t bad : {-1, 16}) {
    const Gpu index = to(*cuda, from_vector(host, std::vector<std::int64_t>{0, 5, bad, 7}, {1, 1, 2, 2}));
    const Gpu dx = eval(op::MaxPool2dBackward{{1, 1, 4, 4}}, dy, index);
    EXPECT_THROW(cuda->synchronize(), ValueError);
    const auto values = dx.to_vector<float>();
    EXPECT_EQ(values[5], dy.to_vector<float>()[1]);
  }
}

}  // namespace
}  // namespace ferrite::testing
