// Philox against published vectors, every distribution against its specification (values from an independent
// Python program) and against its distribution, and the recording scopes.
#include "ferrite/core/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

TEST(Philox, MatchesTheKnownAnswersOfRandom123) {
  using Block = Philox4x32::Block;
  constexpr std::uint32_t ones = 0xffffffffu;
  EXPECT_EQ(Philox4x32::block({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(Philox4x32::block({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(
      Philox4x32::block({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      (Block{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
  static_assert(Philox4x32::block({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5u, "usable at compile time");
}

constexpr RandomKey key{0x0123456789abcdefu, 0x1122334455667788u};
// Positions inside and at the edges of a block, and one whose block number needs 34 bits.
constexpr std::uint64_t elements[] = {0, 1, 2, 3, 4, 7, (std::uint64_t{1} << 35) + 6};

TEST(Random, UniformsAreSpecifiedBitByBit) {
  constexpr std::uint32_t words[] = {0x15d4e40au, 0x722cb3f1u, 0xd01f8defu, 0x0d08e2c9u,
                                     0x6c0ef433u, 0xee80df5fu, 0x7939c568u};
  constexpr std::uint64_t wide[] = {0xe45967e22ba9cu,  0x1a11c593a03f1u, 0x33e317e0d81deu, 0x1dd01bebea0d68u,
                                    0x1f5767de526879u, 0x40242aa859c1eu, 0x18b104ddb16f57u};
  for (int e = 0; e < 7; ++e) {
    const std::uint64_t i = elements[e];
    EXPECT_EQ(random_block(key, i / 4)[i % 4], words[e]);
    EXPECT_EQ(uniform_at<float>(key, i), std::ldexp(static_cast<float>(words[e] >> 8), -24));
    EXPECT_EQ(uniform_at<double>(key, i), std::ldexp(static_cast<double>(wide[e]), -53));
    EXPECT_EQ(uniform_at<Half>(key, i), std::ldexp(static_cast<float>(words[e] >> 21), -11));
    EXPECT_EQ(uniform_at<BFloat16>(key, i), std::ldexp(static_cast<float>(words[e] >> 24), -8));
  }
}

TEST(Random, IntegersAndNormalsMatchTheSpecification) {
  constexpr std::int64_t integers[] = {39, 0, 5, 88, 92, 7, 72};
  constexpr double normals[] = {-2.092402266706716,  0.7385731469251758, 0.6108504098445104,
                                0.20237507122063517, 1.056013295245012,  -0.6336036257593375,
                                0.9983398664700996};
  for (int e = 0; e < 7; ++e) {
    EXPECT_EQ(integer_at(key, elements[e], -5, 95), integers[e]);
    EXPECT_NEAR(normal_at<double>(key, elements[e]), normals[e], 1e-15);
    EXPECT_NEAR(normal_at<float>(key, elements[e]), normals[e], 1e-6);
  }
}

TEST(Random, ExtremeWordsStayInRange) {
  constexpr std::uint32_t ones = 0xffffffffu;
  EXPECT_LT(uniform_from_word<float>(ones), 1.0f);
  EXPECT_LT(to_float(to_half(uniform_from_word<Half>(ones))), 1.0f);
  EXPECT_LT(to_float(to_bfloat16(uniform_from_word<BFloat16>(ones))), 1.0f);
  EXPECT_LT(uniform_from_wide_word(~std::uint64_t{0}), 1.0);
  EXPECT_EQ(integer_from_wide_word(~std::uint64_t{0}, INT64_MIN, INT64_MAX), INT64_MAX - 1);
  EXPECT_EQ(integer_from_wide_word(0, INT64_MIN, INT64_MAX), INT64_MIN);
  EXPECT_EQ(normals_from_words<float>(ones, 0).even, 0.0f);
  const float largest = normals_from_words<float>(0, 0).even;
  EXPECT_TRUE(largest > 6.6f && largest < 6.7f) << largest;
  EXPECT_TRUE(bernoulli_at(key, 0, 1.0f));
  EXPECT_FALSE(bernoulli_at(key, 0, 0.0f));
}

constexpr int samples = 200000;

/// sqrt(n) times the largest distance between the empirical distribution and `cdf`; above 1.95 with p =
/// 0.001.
template <class Cdf>
double kolmogorov_smirnov(std::vector<double> values, Cdf cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    distance = std::max({distance, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return distance * std::sqrt(n);
}

/// Chi-square of equally likely cells, as a distance from its mean in standard deviations.
double chi_square_deviation(const std::vector<int>& counts) {
  const double expected =
      std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double sum = 0;
  for (int count : counts) sum += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

template <class F>
std::vector<double> draw(F&& f) {
  std::vector<double> values(samples);
  for (int i = 0; i < samples; ++i) values[static_cast<std::size_t>(i)] = f(static_cast<std::uint64_t>(i));
  return values;
}

TEST(Random, UniformsAreUniform) {
  const auto identity = [](double x) { return x; };
  for (std::uint64_t stream = 0; stream < 5; ++stream) {
    const RandomKey k{7, stream};
    EXPECT_LT(kolmogorov_smirnov(draw([&](auto i) { return uniform_at<float>(k, i); }), identity), 1.95);
    EXPECT_LT(kolmogorov_smirnov(draw([&](auto i) { return uniform_at<double>(k, i); }), identity), 1.95);
  }
}

TEST(Random, NormalsAreNormalAndTheirPairsUncorrelated) {
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  for (std::uint64_t stream = 0; stream < 5; ++stream) {
    const RandomKey k{11, stream};
    const auto values = draw([&](auto i) { return normal_at<float>(k, i); });
    EXPECT_LT(kolmogorov_smirnov(values, cdf), 1.95);
    EXPECT_LT(kolmogorov_smirnov(draw([&](auto i) { return normal_at<double>(k, i); }), cdf), 1.95);
    double products = 0;
    for (std::size_t i = 0; i < values.size(); i += 2) products += values[i] * values[i + 1];
    EXPECT_LT(std::abs(products) / std::sqrt(samples / 2.0), 4);
  }
}

TEST(Random, IntegersFillTheirRangeEvenly) {
  for (std::int64_t range : {2, 3, 10, 1000}) {
    std::vector<int> counts(static_cast<std::size_t>(range));
    for (std::uint64_t i = 0; i < samples; ++i) {
      const std::int64_t value = integer_at({3, 9}, i, -4, -4 + range);
      ASSERT_TRUE(value >= -4 && value < -4 + range);
      ++counts[static_cast<std::size_t>(value + 4)];
    }
    EXPECT_LT(std::abs(chi_square_deviation(counts)), 4) << range;
  }
}

TEST(Random, BernoulliHitsItsProbability) {
  for (float p : {0.01f, 0.3f, 0.5f, 0.9f}) {
    const auto values = draw([&](auto i) { return bernoulli_at({5, 1}, i, p); });
    const double hits = std::accumulate(values.begin(), values.end(), 0.0);
    EXPECT_LT(std::abs(hits - samples * double{p}) / std::sqrt(samples * double{p} * (1 - double{p})), 4)
        << p;
  }
}

// Counts pairs in a 16 x 16 grid: even cells mean that neither number tells about the other.
template <class First, class Second>
double dependence(First&& first, Second&& second) {
  std::vector<int> cells(256);
  for (std::uint64_t i = 0; i < samples; ++i) {
    ++cells[static_cast<std::size_t>(static_cast<int>(first(i) * 16) * 16 +
                                     static_cast<int>(second(i) * 16))];
  }
  return std::abs(chi_square_deviation(cells));
}

TEST(Random, StreamsSeedsAndNeighboursAreIndependent) {
  const auto of = [](RandomKey k, std::uint64_t shift = 0) {
    return [=](std::uint64_t i) { return uniform_at<float>(k, i + shift); };
  };
  for (std::uint64_t s = 0; s < 4; ++s) {
    EXPECT_LT(dependence(of({1, s}), of({1, s + 1})), 4);
    EXPECT_LT(dependence(of({1, s}), of({1, s + (std::uint64_t{1} << 32)})), 4);
    EXPECT_LT(dependence(of({s, 1}), of({s + 1, 1})), 4);
    EXPECT_LT(dependence(of({s, 1}), of({s + (std::uint64_t{1} << 32), 1})), 4);
    EXPECT_LT(dependence(of({s, 2}), of({s, 2}, 1 + s)), 4);
  }
}

TEST(RandomPermutation, DependsOnSizeAndKeyOnly) {
  EXPECT_EQ(random_permutation(10, key), (std::vector<std::int64_t>{5, 2, 0, 8, 4, 6, 9, 1, 3, 7}));
  EXPECT_EQ(random_permutation(0, key), std::vector<std::int64_t>{});
  EXPECT_EQ(random_permutation(1, key), std::vector<std::int64_t>{0});
  EXPECT_THROW(random_permutation(-1, key), ValueError);
  auto large = random_permutation(5000, key);
  std::sort(large.begin(), large.end());
  for (std::int64_t i = 0; i < 5000; ++i) ASSERT_EQ(large[static_cast<std::size_t>(i)], i);
}

TEST(RandomPermutation, AllOrdersAreEquallyLikely) {
  std::vector<int> counts(24);
  for (std::uint64_t stream = 0; stream < 48000; ++stream) {
    const auto p = random_permutation(4, {1, stream});
    const std::int64_t rank = p[0] * 6 + (p[1] - (p[1] > p[0])) * 2 + (p[2] > p[3]);
    ++counts[static_cast<std::size_t>(rank)];
  }
  EXPECT_LT(std::abs(chi_square_deviation(counts)), 4);
}

TEST(Rng, HandsOutOneStreamAfterAnother) {
  Rng rng(42);
  EXPECT_EQ(rng.next(), (RandomKey{42, 0}));
  EXPECT_EQ(rng.next(), (RandomKey{42, 1}));
  EXPECT_EQ(rng.position(), 2u);
  Rng resumed(rng.seed());
  resumed.set_position(rng.position());
  EXPECT_EQ(resumed.next(), rng.next());
}

TEST(RngReplay, ReplaysWhatItRecordedWithoutAdvancing) {
  Rng a(1), b(2);
  std::vector<RandomKey> log;
  std::vector<RandomKey> drawn;
  {
    const RngReplay record(RngReplay::Record, log);
    for (Rng* rng : {&a, &b, &a}) drawn.push_back(rng->next());
  }
  EXPECT_EQ(log, drawn);
  EXPECT_EQ(a.position(), 2u);
  a.next();  // outside the scope: not recorded
  EXPECT_EQ(log.size(), 3u);
  {
    const RngReplay replay(RngReplay::Replay, log);
    std::vector<RandomKey> again;
    for (Rng* rng : {&a, &b, &a}) again.push_back(rng->next());
    EXPECT_EQ(again, drawn);
  }
  EXPECT_EQ(a.position(), 3u);
  EXPECT_EQ(b.position(), 1u);
}

TEST(RngReplay, ScopesNest) {
  Rng rng(9);
  std::vector<RandomKey> outer, inner, inner_again;
  {
    const RngReplay record(RngReplay::Record, outer);
    rng.next();
    {
      const RngReplay nested(RngReplay::Record, inner);
      rng.next();
    }
    rng.next();
  }
  EXPECT_EQ(outer.size(), 3u);
  EXPECT_EQ(inner, std::vector<RandomKey>{outer[1]});
  {
    // Recomputing the outer scope records the inner one anew, from the replayed keys.
    const RngReplay replay(RngReplay::Replay, outer);
    EXPECT_EQ(rng.next(), outer[0]);
    {
      const RngReplay nested(RngReplay::Record, inner_again);
      rng.next();
    }
    EXPECT_EQ(rng.next(), outer[2]);
    {
      const RngReplay nested(RngReplay::Replay, inner_again);
      EXPECT_EQ(rng.next(), outer[1]);
    }
  }
  EXPECT_EQ(inner_again, inner);
  EXPECT_EQ(rng.position(), 3u);
}

TEST(RngReplay, RefusesToDrawBeyondItsLog) {
  Rng rng(9);
  std::vector<RandomKey> log{{9, 0}};
  {
    const RngReplay replay(RngReplay::Replay, log);
    rng.next();
    EXPECT_THROW(rng.next(), ValueError);
  }
  EXPECT_EQ(rng.next(), (RandomKey{9, 0}));
}

TEST(RngReplay, OtherThreadsAreNotWatched) {
  std::vector<RandomKey> log;
  const RngReplay record(RngReplay::Record, log);
  std::thread([] { Rng(3).next(); }).join();
  EXPECT_TRUE(log.empty());
}

}  // namespace
}  // namespace ferrite
