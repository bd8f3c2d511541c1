// cross_entropy_loss computes its gradient along with the loss: whatever becomes of the loss then, gradients
// are those of the losses row by row.
#include <gtest/gtest.h>

#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using Doubles = std::vector<double>;

struct LossGradient : ::testing::Test {
  Autodiff<Cpu> b;
  Rng rng{3};
  Tensor<Autodiff<Cpu>> targets = from_vector(b, std::vector<std::int64_t>{4, 0, -100, 2, 1, 4});

  Tensor<Autodiff<Cpu>> logits(DType dtype) {
    Rng own(5);
    return parameter(randn(b, {6, 5}, own, 0, 2, dtype), "logits");
  }
  /// Of f(mean loss), by the losses row by row.
  template <class F>
  Doubles want(const Tensor<Autodiff<Cpu>>& x, F&& f) {
    const auto losses =
        softmax_cross_entropy(x, targets, CrossEntropyConfig{}.with_reduction(Reduction::none));
    return f(sum(losses) / 5).backward().of(x).template to_vector<double>();
  }
  static void expect_near(const Doubles& got, const Doubles& want, double tolerance) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
  }
};

TEST_F(LossGradient, IsThatOfTheRows) {
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::f32, 1e-7}, {DType::f64, 1e-15}, {DType::bf16, 2e-3}}) {
    const auto x = logits(dtype);
    const auto bare = [](const auto& loss) { return loss; };
    const auto scaled = [](const auto& loss) { return loss * 3; };
    expect_near(softmax_cross_entropy(x, targets).backward().of(x).to_vector<double>(), want(x, bare),
                tolerance);
    expect_near(scaled(softmax_cross_entropy(x, targets)).backward().of(x).to_vector<double>(),
                want(x, scaled), 3 * tolerance);
  }
}

TEST_F(LossGradient, IsTheSameInEveryPassOverOneGraph) {
  const auto x = logits(DType::f32);
  const auto loss = softmax_cross_entropy(x, targets);
  const Doubles first = loss.backward().of(x).to_vector<double>();
  Gradients<Cpu> twice = loss.backward();
  EXPECT_EQ(twice.of(x).to_vector<double>(), first);
  backward(loss, twice);
  Doubles doubled = first;
  for (double& value : doubled) value *= 2;
  EXPECT_EQ(twice.of(x).to_vector<double>(), doubled);
  EXPECT_EQ(loss.backward().of(x).to_vector<double>(), first) << "adding must not reach what the graph keeps";
}

TEST_F(LossGradient, AddsToWhatElseDependsOnTheLogits) {
  const auto x = logits(DType::f32);
  const auto loss = softmax_cross_entropy(x, targets) + sum(square(x)) * 0.5;
  Doubles sum = want(x, [](const auto& l) { return l; });
  const Doubles values = value(x).to_vector<double>();
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  expect_near(loss.backward().of(x).to_vector<double>(), sum, 1e-6);
}

/// 1 / 4096 of a probability of 2e-5 is less than f16 can hold, but not after scaling.
TEST_F(LossGradient, OfF16SurvivesByALossScale) {
  const std::int64_t rows = 4096, classes = 8;
  const auto certain = one_hot(zeros(b, {rows}, DType::i64), classes, DType::f32) * 11;
  const auto x = parameter(cast(certain, DType::f16), "logits");
  const auto loss = softmax_cross_entropy(x, zeros(b, {rows}, DType::i64)) * 65536;
  const Doubles gradient = loss.backward().of(x).to_vector<double>();
  EXPECT_NEAR(gradient[1], 16 * std::exp(-11.0), 16 * std::exp(-11.0) * 1e-2);
}

TEST_F(LossGradient, IsASecondOutputOnRequest) {
  const auto x = logits(DType::f32);
  op::CrossEntropyLoss op;
  EXPECT_EQ(eval_all(op, x, targets).size(), 1u);
  op.with_gradient = true;
  const auto both = eval_all(op, x, targets);
  ASSERT_EQ(both.size(), 2u);
  expect_near(value(both[1]).to_vector<double>(), want(x, [](const auto& l) { return l; }), 1e-7);
}

}  // namespace
}  // namespace ferrite
