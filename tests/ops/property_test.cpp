// Laws that hold for any shape: random shapes, axes and strides, with the seed printed on failure.
#include <gtest/gtest.h>

#include <cmath>

#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

/// Small random choices from one seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : rng_(seed) {}
  std::int64_t roll(std::int64_t low, std::int64_t high) {  // inclusive
    Reference reference;
    return randint(reference, {1}, rng_, low, high + 1).item<std::int64_t>();
  }
  Shape shape(int least, int most, std::int64_t longest = 5) {
    Shape s;
    const auto rank = roll(least, most);
    for (std::int64_t i = 0; i < rank; ++i) s.push_back(roll(roll(0, 9) == 0 ? 0 : 1, longest));
    return s;
  }
  Rng& rng() { return rng_; }

 private:
  Rng rng_;
};

template <class F>
void for_seeds(int count, F f) {
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(static_cast<std::uint64_t>(seed));
    f(dice);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

template <class B>
std::vector<double> doubles(const Tensor<B>& x) {
  return x.template to_vector<double>();
}

/// A random chain of views of a fresh tensor, so that operands have unusual strides.
Tensor<Cpu> random_view(Dice& dice, Tensor<Cpu> x) {
  for (std::int64_t steps = dice.roll(0, 4); steps > 0 && x.rank() > 0; --steps) {
    const int axis = static_cast<int>(dice.roll(0, x.rank() - 1));
    switch (dice.roll(0, 4)) {
      case 0:
        x = transpose(x, axis, static_cast<int>(dice.roll(0, x.rank() - 1)));
        break;
      case 1:
        x = flip(x, {axis});
        break;
      case 2:
        x = slice(x, axis, dice.roll(0, 1), std::nullopt, dice.roll(1, 2));
        break;
      case 3:
        if (x.rank() < 5) x = unsqueeze(x, axis);
        break;
      default:
        if (x.size(axis) == 1) {
          Shape wide = x.shape();
          wide[axis] = dice.roll(1, 3);
          x = expand(x, wide);
        }
    }
  }
  return x;
}

TEST(Properties, OpsDoNotSeeStrides) {
  for_seeds(300, [](Dice& dice) {
    Cpu b;
    const auto x = random_view(dice, randn(b, dice.shape(1, 4), dice.rng()));
    const auto dense = clone(x);
    EXPECT_EQ(doubles(exp(x)), doubles(exp(dense)));
    EXPECT_EQ(doubles(x * x + 1), doubles(dense * dense + 1));
    EXPECT_EQ(doubles(cast(x, DType::bf16)), doubles(cast(dense, DType::bf16)));
    EXPECT_EQ(doubles(cumsum(x, 0)), doubles(cumsum(dense, 0)));
    if (x.numel() == 0) return;
    EXPECT_EQ(doubles(max(x, {-1})), doubles(max(dense, {-1})));
    EXPECT_EQ(doubles(argmax(x, 0)), doubles(argmax(dense, 0)));
  });
}

TEST(Properties, BroadcastingEqualsExpandingFirst) {
  for_seeds(200, [](Dice& dice) {
    Cpu b;
    const Shape full = dice.shape(0, 4);
    Shape part;
    const auto skip = dice.roll(0, full.rank());
    for (int i = static_cast<int>(skip); i < full.rank(); ++i) part.push_back(dice.roll(0, 1) ? full[i] : 1);
    const auto x = randn(b, full, dice.rng()), y = randn(b, part, dice.rng());
    const auto wide = clone(expand(y, full));
    EXPECT_EQ(doubles(x - y), doubles(x - wide));
    EXPECT_EQ(doubles(y / x), doubles(wide / x));
    EXPECT_EQ((x < y).to_vector<bool>(), (x < wide).to_vector<bool>());
  });
}

TEST(Properties, ReducingAxesInAnyOrderGivesTheSameSum) {
  for_seeds(200, [](Dice& dice) {
    Cpu b;
    const auto x = random_view(dice, randint(b, dice.shape(2, 4), dice.rng(), -9, 9));
    if (x.rank() < 2) return;
    const auto all = sum(x).item<std::int64_t>();
    EXPECT_EQ(sum(sum(x, {0})).item<std::int64_t>(), all);
    EXPECT_EQ(sum(sum(x, {-1})).item<std::int64_t>(), all);
    EXPECT_EQ(sum(x, {0, 1}).to_vector<std::int64_t>(), sum(sum(x, {1}), {0}).to_vector<std::int64_t>());
  });
}

TEST(Properties, MatmulAgreesWithSumOfProducts) {
  for_seeds(200, [](Dice& dice) {
    Cpu b;
    const auto m = dice.roll(1, 20), k = dice.roll(0, 20), n = dice.roll(1, 20), batch = dice.roll(1, 3);
    const auto x = dice.roll(0, 1) ? randint(b, {batch, m, k}, dice.rng(), -9, 9)
                                   : transpose(randint(b, {batch, k, m}, dice.rng(), -9, 9), 1, 2);
    const auto y = dice.roll(0, 1) ? randint(b, {k, n}, dice.rng(), -9, 9)
                                   : transpose(randint(b, {n, k}, dice.rng(), -9, 9), 0, 1);
    const auto expected = sum(unsqueeze(x, -1) * y, {2});
    EXPECT_EQ(matmul(x, y).to_vector<std::int64_t>(), expected.to_vector<std::int64_t>());
    EXPECT_EQ(doubles(matmul(cast(x, DType::f32), cast(y, DType::f32))), doubles(expected))
        << "small integers are exact in f32";
  });
}

TEST(Properties, ReshapeAndPermuteKeepEveryElement) {
  for_seeds(200, [](Dice& dice) {
    Cpu b;
    const auto x = random_view(dice, randn(b, dice.shape(1, 4), dice.rng()));
    EXPECT_EQ(doubles(flatten(x)), doubles(x));
    Shape order;
    for (int i = x.rank() - 1; i >= 0; --i) order.push_back(i);
    EXPECT_EQ(doubles(permute(permute(x, order), order)), doubles(x));
    EXPECT_EQ(doubles(flip(flip(x))), doubles(x));
    EXPECT_EQ(doubles(cat(chunk(x, 2), 0)), doubles(x));
  });
}

TEST(Properties, SortIsAPermutationInOrder) {
  for_seeds(100, [](Dice& dice) {
    Cpu b;
    const auto x = random_view(dice, randn(b, dice.shape(1, 3, 9), dice.rng()));
    if (x.rank() == 0) return;
    const auto [values, indices] = sort(x, -1);
    EXPECT_EQ(doubles(gather(x, -1, indices)), doubles(values));
    if (x.size(-1) > 1) {
      EXPECT_TRUE(all(slice(values, -1, 1) >= slice(values, -1, 0, -1)).item<bool>());
    }
  });
}

TEST(Properties, SoftmaxSumsToOneAndIgnoresShifts) {
  for_seeds(100, [](Dice& dice) {
    Cpu b;
    const auto x = random_view(dice, randn(b, dice.shape(1, 3, 40), dice.rng(), 0, 30, DType::f64));
    if (x.rank() == 0 || x.numel() == 0) return;
    for (double total : doubles(sum(softmax(x), {-1}))) EXPECT_NEAR(total, 1, 1e-12);
    const auto a = doubles(softmax(x)), c = doubles(softmax(x + 1000));
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], c[i], 1e-10);
  });
}

}  // namespace
}  // namespace ferrite
