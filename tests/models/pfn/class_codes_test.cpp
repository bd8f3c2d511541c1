// Codes of more classes than symbols tell classes apart, use symbols evenly and give probabilities back.
#include "ferrite/models/pfn/class_codes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::testing {
namespace {

using Doubles = std::vector<double>;
using pfn::ClassCodes;

std::vector<std::int32_t> all_classes(std::int64_t count) {
  std::vector<std::int32_t> classes(static_cast<std::size_t>(count));
  std::iota(classes.begin(), classes.end(), 0);
  return classes;
}

/// What a network that knows the classes' probabilities would say of the symbols.
Doubles symbols_of(const ClassCodes& codes, const Doubles& classes) {
  Doubles out(static_cast<std::size_t>(codes.codings() * codes.symbols()));
  for (std::int64_t j = 0; j < codes.codings(); ++j)
    for (std::int32_t c = 0; c < codes.classes(); ++c)
      out[static_cast<std::size_t>(j * codes.symbols() + codes.symbol(j, c))] +=
          classes[static_cast<std::size_t>(c)];
  return out;
}

TEST(ClassCodes, TellClassesApartInEveryRound) {
  for (const std::int64_t count : {11, 12, 26, 99, 100, 101, 350, 1000}) {
    const ClassCodes codes(count, 2, 5);
    const std::int64_t digits = count <= 100 ? 2 : 3;
    ASSERT_EQ(codes.codings(), 2 * digits) << count;
    EXPECT_EQ(codes.symbols(), 10);
    for (std::int64_t round = 0; round < 2; ++round) {
      std::set<std::vector<std::int32_t>> words;
      for (std::int32_t c = 0; c < count; ++c) {
        std::vector<std::int32_t> word;
        for (std::int64_t j = 0; j < digits; ++j) word.push_back(codes.symbol(round * digits + j, c));
        words.insert(word);
      }
      EXPECT_EQ(static_cast<std::int64_t>(words.size()), count);
    }
    for (std::int64_t j = 0; j < codes.codings(); ++j) {
      std::vector<std::int64_t> uses(10);
      for (const std::int32_t symbol : codes.encode(j, all_classes(count)))
        ++uses[static_cast<std::size_t>(symbol)];
      EXPECT_LE(*std::max_element(uses.begin(), uses.end()), count / 10 + 10) << count;
      EXPECT_GE(*std::min_element(uses.begin(), uses.end()), 1) << count;
    }
  }
}

TEST(ClassCodes, FewClassesAreTheirOwnSymbols) {
  const ClassCodes codes(7);
  EXPECT_EQ(codes.codings(), 1);
  EXPECT_EQ(codes.symbols(), 7);
  EXPECT_EQ(codes.encode(0, all_classes(7)), all_classes(7));
  const Doubles p{0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1};
  const Doubles back = codes.decode(p, 1);
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(back[i], p[i], 1e-12);
}

TEST(ClassCodes, IndependentSymbolsGiveTheirProduct) {
  const ClassCodes codes(100, 1);
  Doubles symbols(20);
  for (std::size_t i = 0; i < 20; ++i) symbols[i] = 0.5 + uniform_at<double>({1, 1}, i);
  for (std::size_t j = 0; j < 2; ++j) {
    const double sum = std::accumulate(symbols.begin() + 10 * static_cast<int>(j),
                                       symbols.begin() + 10 * static_cast<int>(j) + 10, 0.0);
    for (std::size_t i = 0; i < 10; ++i) symbols[10 * j + i] /= sum;
  }
  const Doubles back = codes.decode(symbols, 1);
  for (std::int32_t c = 0; c < 100; ++c)
    EXPECT_NEAR(back[static_cast<std::size_t>(c)],
                symbols[static_cast<std::size_t>(codes.symbol(0, c))] *
                    symbols[static_cast<std::size_t>(10 + codes.symbol(1, c))],
                1e-12);
}

TEST(ClassCodes, ProbabilitiesComeBack) {
  constexpr std::int64_t count = 26;
  const ClassCodes codes(count, 3, 9);
  Doubles truth(count), symbols;
  for (std::size_t c = 0; c < truth.size(); ++c) truth[c] = std::exp(2 * normal_at<double>({2, 2}, c));
  const double sum = std::accumulate(truth.begin(), truth.end(), 0.0);
  for (double& p : truth) p /= sum;
  const Doubles back = codes.decode(symbols_of(codes, truth), 1);
  double distance = 0;
  for (std::size_t c = 0; c < truth.size(); ++c) distance += std::abs(back[c] - truth[c]);
  EXPECT_LT(distance, 0.06);
  EXPECT_NEAR(std::accumulate(back.begin(), back.end(), 0.0), 1, 1e-12);
}

TEST(ClassCodes, RoundsCorrectErrors) {
  constexpr std::int64_t count = 50, rows = 400;
  const auto right = [&](std::int64_t rounds) {
    const ClassCodes codes(count, rounds, 1);
    const auto width = static_cast<std::size_t>(codes.symbols());
    Doubles symbols(static_cast<std::size_t>(codes.codings() * rows) * width);
    for (std::int64_t j = 0; j < codes.codings(); ++j)
      for (std::int64_t r = 0; r < rows; ++r) {  // a noisy guess of the symbol of class r % count
        double* const p = symbols.data() + static_cast<std::size_t>(j * rows + r) * width;
        double sum = 0;
        for (std::size_t s = 0; s < width; ++s) {
          const bool is_true =
              static_cast<std::int32_t>(s) == codes.symbol(j, static_cast<std::int32_t>(r % count));
          const auto place = static_cast<std::uint64_t>(r) * width + s;
          sum += p[s] =
              std::exp(normal_at<double>({4, static_cast<std::uint64_t>(j)}, place) + (is_true ? 2 : 0));
        }
        for (std::size_t s = 0; s < width; ++s) p[s] /= sum;
      }
    const Doubles classes = codes.decode(symbols, rows);
    int hits = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const double* const p = classes.data() + r * count;
      hits += std::max_element(p, p + count) - p == r % count;
    }
    return hits;
  };
  const int once = right(1), thrice = right(3);
  EXPECT_GT(once, rows / 4);
  EXPECT_GT(thrice, once + rows / 8);
}

TEST(ClassCodes, DependOnTheSeedAndRefuseWhatDoesNotFit) {
  EXPECT_EQ(ClassCodes(40, 2, 1).encode(3, all_classes(40)), ClassCodes(40, 2, 1).encode(3, all_classes(40)));
  EXPECT_NE(ClassCodes(40, 2, 1).encode(3, all_classes(40)), ClassCodes(40, 2, 2).encode(3, all_classes(40)));
  EXPECT_THROW(ClassCodes(1), ValueError);
  EXPECT_THROW(ClassCodes(20, 0), ValueError);
  const ClassCodes codes(20, 1);
  EXPECT_THROW(codes.encode(0, std::vector<std::int32_t>{20}), ValueError);
  EXPECT_THROW(codes.decode(Doubles(19), 1), ValueError);
  const Doubles equal = codes.decode(Doubles(20), 1);
  EXPECT_NEAR(equal[7], 1.0 / 20, 1e-12);
}

}  // namespace
}  // namespace ferrite::testing
