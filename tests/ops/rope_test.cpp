// Rotary position embedding: against the definition in double, far positions, frequencies of models.
#include "ferrite/ops/rope.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ferrite/stacks.hpp"

namespace ferrite::testing {
namespace {

/// Position t of x [T, H, D], rotated in double by the angle that f32 gives.
std::vector<double> rotated(const std::vector<float>& x, std::int64_t heads, std::int64_t width,
                            const std::vector<float>& frequencies, const std::vector<std::int64_t>& positions,
                            RopePairs pairs) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size() / static_cast<std::size_t>(width); ++row) {
    const std::int64_t position = positions[row / static_cast<std::size_t>(heads)];
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<float>(position) * frequencies[i];
      const std::size_t base = row * static_cast<std::size_t>(width);
      const bool halves = pairs == RopePairs::halves;
      const std::size_t a = base + (halves ? i : 2 * i), b = halves ? a + frequencies.size() : a + 1;
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
  }
  return y;
}

TEST(Rope, IsExactAtFarPositions) {
  constexpr std::int64_t heads = 3, width = 64;
  const std::vector<std::int64_t> positions = {0, 1, 4095, 8191, 100003, 131071};
  const std::vector<float> frequencies = RopeConfig{500000}.frequencies(width);
  Cpu cpu;
  Rng rng(1);
  const auto x = rand(cpu, {6, heads, width}, rng);
  const auto given = x.to_vector<float>();
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
    const auto want = rotated(given, heads, width, frequencies, positions, pairs);
    const auto table = from_vector(cpu, frequencies), place = from_vector(cpu, positions);
    const auto got = rope(x, table, place, -3, pairs).to_vector<float>();
    const auto narrow = rope(x, table, cast(place, DType::i32), -3, pairs).to_vector<float>();
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 3e-7) << i;
    EXPECT_EQ(got, narrow);
    // The same positions counted from a start, one at a time.
    for (std::size_t t = 0; t < positions.size(); ++t) {
      const auto at = static_cast<std::int64_t>(t);
      const auto one = rope(slice(x, 0, at, at + 1), table, positions[t], -3, pairs).to_vector<float>();
      EXPECT_TRUE(std::equal(one.begin(), one.end(), got.begin() + at * heads * width));
    }
  }
}

TEST(Rope, ReadsHeadsWhereTheyLieAndAccumulates) {
  Autodiff<Cpu> b;
  Rng rng(2);
  const auto packed = parameter(rand(b, {2, 5, 6, 8}, rng), "packed");
  const auto table = rope_frequencies(b, RopeConfig{}, 8);
  const auto apart = rope(slice(packed, 2, 1, 4), table),
             copied = rope(contiguous(slice(packed, 2, 1, 4)), table);
  EXPECT_EQ(apart.to_vector<float>(), copied.to_vector<float>());
  // A rotation keeps lengths: the gradient of half the squares is x itself.
  const auto gradient = (sum(square(apart)) * 0.5f).backward().of(packed);
  const auto want =
      cat(std::vector{zeros(b, {2, 5, 1, 8}), slice(packed, 2, 1, 4), zeros(b, {2, 5, 2, 8})}, 2);
  const auto got = gradient.to_vector<float>(), wanted = want.to_vector<float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-6) << i;
}

TEST(Rope, FrequenciesOfLlama) {
  const auto plain = RopeConfig{500000}.frequencies(128);
  EXPECT_EQ(plain[0], 1.0f);
  EXPECT_NEAR(plain[63], std::pow(500000.0, -126.0 / 128), 1e-12);
  const auto halved = RopeConfig{500000}.with_scaling(RopeScaling::linear(2)).frequencies(128);
  EXPECT_EQ(halved[5], plain[5] / 2);
  // As Llama 3.1 has it: short waves stay, long ones are divided by 8, those between lie between.
  const auto scaled = RopeConfig{500000}.with_scaling(RopeScaling{}).frequencies(128);
  EXPECT_EQ(scaled[0], plain[0]);
  EXPECT_EQ(scaled[63], plain[63] / 8);
  std::size_t between = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_LE(scaled[i], plain[i]);
    EXPECT_GE(scaled[i], plain[i] / 8);
    between += scaled[i] < plain[i] && scaled[i] > plain[i] / 8;
  }
  EXPECT_GT(between, 3u);
}

TEST(Rope, RefusesWhatItCannotRotate) {
  const Meta x{{2, 5, 3, 8}, DType::f32}, table{{4}, DType::f32}, odd{{2, 5, 3, 7}, DType::f32};
  EXPECT_THROW(op::Rope{}.infer(Metas{odd, table}), ShapeError);
  EXPECT_THROW(op::Rope{-1}.infer(Metas{x, table}), ShapeError);
  EXPECT_THROW(op::Rope{-5}.infer(Metas{x, table}), ShapeError);
  EXPECT_THROW(op::Rope{}.infer(Metas{x, {{3}, DType::f32}}), ShapeError);
  EXPECT_THROW(op::Rope{}.infer(Metas{x, {{4}, DType::f16}}), DTypeError);
  EXPECT_THROW(op::Rope{}.infer(Metas{x, table, {{4}, DType::i64}}), ShapeError);
  EXPECT_THROW(op::Rope{}.infer(Metas{x, table, {{5}, DType::u8}}), DTypeError);
  EXPECT_THROW(RopeConfig{0}.frequencies(8), ValueError);
  EXPECT_THROW(RopeConfig{}.frequencies(7), ValueError);
  EXPECT_THROW(RopeConfig{}.with_scaling(RopeScaling::linear(0.5)).frequencies(8), ValueError);
}

}  // namespace
}  // namespace ferrite::testing
