// Initialisations: bounds, moments, and the numbers PyTorch's formulas give.
#include "ferrite/nn/init.hpp"

#include "nn/nn_test.hpp"

namespace ferrite::nn {
namespace {

using testing::expect_error;

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

Moments moments(const Initializer& init, const Shape& shape) {
  Reference backend;
  Rng rng(5);
  const std::vector<double> values = init.create(backend, shape, rng, DType::f64).to_vector<double>();
  Moments m{0, 0, values[0], values[0]};
  for (double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (double v : values) m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

/// 60 x 40 x 3 x 3: fan_in 360, fan_out 540.
const Shape conv_weight{60, 40, 3, 3};

TEST(Initializer, FansCountTheReceptiveField) {
  EXPECT_EQ(fans_of(conv_weight).in, 360);
  EXPECT_EQ(fans_of(conv_weight).out, 540);
  EXPECT_EQ(fans_of({7, 5}).in, 5);
  expect_error<ShapeError>([] { fans_of({3}); }, {"[init] weight [3]", "two axes"});
}

TEST(Initializer, UniformKindsFillTheirInterval) {
  const auto expect_interval = [](const Initializer& init, double bound) {
    const Moments m = moments(init, conv_weight);
    EXPECT_NEAR(m.low, -bound, 0.01 * bound);
    EXPECT_NEAR(m.high, bound, 0.01 * bound);
    EXPECT_NEAR(m.deviation, bound / std::sqrt(3), 0.02 * bound);
    EXPECT_NEAR(m.mean, 0, 0.02 * bound);
  };
  expect_interval(Initializer::uniform(-3, 3), 3);
  expect_interval(Initializer::kaiming_uniform(std::sqrt(5.0)), 1 / std::sqrt(360));
  expect_interval(Initializer::kaiming_uniform(), std::sqrt(6.0 / 360));
  expect_interval(Initializer::kaiming_uniform(0, Fan::out), std::sqrt(6.0 / 540));
  expect_interval(Initializer::xavier_uniform(), std::sqrt(6.0 / 900));
  expect_interval(Initializer::xavier_uniform(2), 2 * std::sqrt(6.0 / 900));
}

TEST(Initializer, NormalKindsHaveTheirDeviation) {
  const auto expect_deviation = [](const Initializer& init, double mean, double deviation) {
    const Moments m = moments(init, conv_weight);
    EXPECT_NEAR(m.deviation, deviation, 0.02 * deviation);
    EXPECT_NEAR(m.mean, mean, 0.03 * deviation);
    EXPECT_GT(m.high, mean + 3 * deviation);
  };
  expect_deviation(Initializer::normal(1, 0.5), 1, 0.5);
  expect_deviation(Initializer::kaiming_normal(), 0, std::sqrt(2.0 / 360));
  expect_deviation(Initializer::kaiming_normal(1, Fan::out), 0, std::sqrt(1.0 / 540));
  expect_deviation(Initializer::xavier_normal(), 0, std::sqrt(2.0 / 900));
}

TEST(Initializer, ATruncatedNormalStaysInsideAndLosesTheRightDeviation) {
  const Moments m = moments(Initializer::trunc_normal(0, 0.02, -0.04, 0.04), conv_weight);
  EXPECT_GE(m.low, -0.04);
  EXPECT_LE(m.high, 0.04);
  EXPECT_NEAR(m.deviation, 0.02 * 0.87962566, 0.0003);  // of a normal cut at two deviations
  EXPECT_LT(moments(Initializer::trunc_normal(0, 1, 1, 2), conv_weight).mean, 1.5);
  expect_error<ValueError>([] { Initializer::trunc_normal(0, 1, 5, 6); }, {"[trunc_normal]", "1 %"});
  expect_error<ValueError>([] { Initializer::trunc_normal(0, 1, 2, -2); }, {"[trunc_normal]"});
}

TEST(Initializer, OneSeedGivesOneTensor) {
  Reference backend;
  const auto draw = [&](std::uint64_t seed) {
    Rng rng(seed);
    return Initializer::trunc_normal().create(backend, {5}, rng).to_vector();
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Initializer, DtypesAndEmptyShapesWork) {
  Reference backend;
  Rng rng(1);
  EXPECT_EQ(Initializer::trunc_normal().create(backend, {4}, rng, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(Initializer::kaiming_uniform().create(backend, {3, 0}, rng).numel(), 0);
  EXPECT_EQ(Initializer::ones().create(backend, {2}, rng).to_vector(), (std::vector<float>{1, 1}));
}

TEST(Fork, GivesEachLayerItsOwnStreams) {
  Rng rng(1);
  Rng a = fork(rng), b = fork(rng);
  EXPECT_NE(a.seed(), b.seed());
  EXPECT_NE(a.seed(), rng.seed());
  EXPECT_EQ(a.position(), 0u);
}

}  // namespace
}  // namespace ferrite::nn
