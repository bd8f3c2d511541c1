// QuantileTokenizer on Reference and Cpu against loops in f64 over whole sorted columns.
#include "ferrite/models/quantile_tokenizer/quantile_tokenizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "models/quantile_tokenizer/nasty_columns.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;

/// np.quantile on the finite arithmetic of this test: sorted column, level, method.
double quantile(std::vector<double> column, double level, QuantileMethod method) {
  std::sort(column.begin(), column.end());
  const double n = static_cast<double>(column.size());
  const auto at = [&](double rank) { return column[static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1))]; };
  if (method == QuantileMethod::linear) {
    const volatile double h = level * (n - 1);
    const double j = std::floor(h);
    return interpolate_quantile(at(j), at(j + 1), h - j);
  }
  const volatile double h = level * n;
  if (h != std::floor(h)) return at(std::floor(h));
  if (method == QuantileMethod::inverted_cdf) return at(h - 1);
  return interpolate_quantile(at(h - 1), at(h), 0.5);
}

std::vector<double> column_of(const std::vector<double>& values, std::int64_t columns, std::int64_t c) {
  std::vector<double> column;
  for (std::size_t i = static_cast<std::size_t>(c); i < values.size(); i += static_cast<std::size_t>(columns))
    column.push_back(values[i]);
  return column;
}

template <class B>
class Tokenizer : public ::testing::Test {
 public:
  B b;
};
using Backends = ::testing::Types<Reference, Cpu>;
TYPED_TEST_SUITE(Tokenizer, Backends);

TYPED_TEST(Tokenizer, KeepsTheQuantilesOfEveryColumnAsEdgesAndCountsThem) {
  for (const std::int64_t rows : {1, 3, 50, 701})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const QuantileMethod method :
           {QuantileMethod::linear, QuantileMethod::inverted_cdf, QuantileMethod::averaged_inverted_cdf}) {
        const auto x = matrix(this->b, nasty(rows, 5), nasty_columns, dtype);
        const auto values = x.template to_vector<double>();
        const auto config =
            TokenizerConfig{}.with_bins(10).with_method(method).with_duplicates(DuplicateEdges::keep);
        const auto fitted = QuantileTokenizer::fit(x, config);
        for (std::int64_t c = 0; c < nasty_columns; ++c) {
          auto column = column_of(values, nasty_columns, c);
          std::erase_if(column, [](double v) { return v != v; });
          const ColumnFit& fit = fitted.columns()[static_cast<std::size_t>(c)];
          ASSERT_EQ(fit.count, static_cast<std::int64_t>(column.size()));
          ASSERT_EQ(fit.missing, rows - fit.count);
          if (column.empty()) {
            EXPECT_TRUE(fit.edges.empty());
            continue;
          }
          ASSERT_EQ(fit.edges.size(), 9u);
          for (int i = 1; i < 10; ++i)
            ASSERT_EQ(fit.edges[static_cast<std::size_t>(i - 1)], quantile(column, i / 10.0, method))
                << "column " << c << ", edge " << i << " of " << rows << " rows";
        }
      }
}

TYPED_TEST(Tokenizer, GivesTheTokensOfASearchInF64) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Closed closed : {Closed::left, Closed::right})
      for (const DuplicateEdges policy :
           {DuplicateEdges::keep, DuplicateEdges::drop, DuplicateEdges::merge}) {
        const auto x = matrix(this->b, nasty(500, 7), nasty_columns, dtype);
        const auto values = x.template to_vector<double>();
        const auto [fitted, tokens] = QuantileTokenizer::fit_transform(
            x, TokenizerConfig{}.with_bins(12).with_closed(closed).with_duplicates(policy));
        EXPECT_EQ(tokens.dtype(), DType::u8);
        const auto got = tokens.template to_vector<std::int64_t>();
        for (std::size_t i = 0; i < values.size(); ++i) {
          const auto& edges = fitted.columns()[i % nasty_columns].edges;
          const auto found = closed == Closed::left ? std::upper_bound(edges.begin(), edges.end(), values[i])
                                                    : std::lower_bound(edges.begin(), edges.end(), values[i]);
          const std::int64_t want = values[i] == values[i] ? found - edges.begin() : 12;
          ASSERT_EQ(got[i], want) << "element " << i << ", value " << values[i];
        }
      }
}

TYPED_TEST(Tokenizer, BinsOfDistinctValuesAreEquallyFull) {
  Rng rng(3);
  const auto x = cast(rand(this->b, {1000, 2}, rng), DType::f64);
  const auto fitted = QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(8).with_statistics(true));
  for (const ColumnFit& c : fitted.columns()) {
    for (const std::int64_t n : c.bin_counts) EXPECT_EQ(n, 125);
    EXPECT_DOUBLE_EQ(c.largest_share(), 0.125);
  }
}

TYPED_TEST(Tokenizer, FollowsAnyMonotoneMapOfTheValues) {
  Rng rng(6);
  const auto x = cast(randn(this->b, {700, 3}, rng), DType::f64);
  for (const Closed closed : {Closed::left, Closed::right}) {
    // Edges are elements, so they go through the map with them.
    const auto config =
        TokenizerConfig{}.with_bins(30).with_closed(closed).with_method(QuantileMethod::inverted_cdf);
    const auto tokens = QuantileTokenizer::fit_transform(x, config).second.template to_vector<int>();
    for (const auto& mapped : {exp(x), x * 1e200, x * 3 + 100})
      EXPECT_EQ(QuantileTokenizer::fit_transform(mapped, config).second.template to_vector<int>(), tokens);
    const auto values = x.template to_vector<double>();
    for (std::size_t c = 0; c < 3; ++c)  // and tokens never fall where values rise
      for (std::size_t i = c; i < values.size(); i += 3)
        for (std::size_t j = c; j < 60; j += 3)
          if (values[i] < values[j]) {
            ASSERT_LE(tokens[i], tokens[j]);
          }
  }
}

TYPED_TEST(Tokenizer, MergesHeavyValuesIntoBinsOfTheirOwn) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(0);
  for (int i = 1; i <= 20; ++i) values.insert(values.end(), {i * 0.01, -i * 0.01});
  for (const Closed closed : {Closed::left, Closed::right}) {
    const auto x = matrix(this->b, values, 1, DType::f32);
    const auto config =
        TokenizerConfig{}.with_bins(10).with_closed(closed).with_duplicates(DuplicateEdges::merge);
    const auto [fitted, tokens] = QuantileTokenizer::fit_transform(x, config);
    const auto got = tokens.template to_vector<int>();
    const int heavy = got[0];
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(got[i] == heavy, values[i] == 0) << values[i];
    EXPECT_LE(fitted.columns()[0].bins(), 10);
  }
}

TYPED_TEST(Tokenizer, InvertsByMeanOrMidpoint) {
  const auto x = matrix(this->b, {0, 1, 2, 3, 4, 5, 6, 7, nan}, 1, DType::f64);
  const auto fitted = QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(2).with_statistics(true));
  EXPECT_EQ(fitted.columns()[0].edges, std::vector<double>{3.5});
  const auto tokens = fitted.transform(x);
  const auto means = fitted.inverse(tokens, BinValue::mean).template to_vector<double>();
  const auto middles = fitted.inverse(tokens, BinValue::midpoint, DType::f64).template to_vector<double>();
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(means[i], i < 4 ? 1.5 : 5.5);
    EXPECT_EQ(middles[i], i < 4 ? 1.75 : 5.25);
  }
  EXPECT_TRUE(std::isnan(means[8]));
}

TYPED_TEST(Tokenizer, InvertsByMeanIntoTheBinWhereTheMeanRoundsPastIt) {
  const auto x = matrix(this->b, {0, 0, 0, 0.1, 0.1, 0.1}, 1, DType::f64);
  ASSERT_GT((0.1 + 0.1 + 0.1) / 3, 0.1);
  const auto config = TokenizerConfig{}.with_bins(2).with_statistics(true);
  const auto [fitted, tokens] = QuantileTokenizer::fit_transform(x, config);
  EXPECT_EQ(fitted.inverse(tokens, BinValue::mean, DType::f64).template to_vector<double>(),
            (std::vector<double>{0, 0, 0, 0.1, 0.1, 0.1}));
}

/// Of one kind each: ties, a fine lattice, all magnitudes, neighbouring doubles, f32 in f64.
std::vector<double> random_columns(std::int64_t rows, std::uint64_t seed) {
  std::vector<double> values;
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rows); ++r) {
    const double u = uniform_at<double>({seed, 1}, r), v = uniform_at<double>({seed, 2}, r);
    const double row[] = {std::floor(4 * u) * 0.1, std::floor(100 * u) * 0.1 - 3,
                          std::ldexp(u - 0.5, static_cast<int>(2000 * v) - 1000),
                          1 + std::floor(6 * u) * 0x1p-52, static_cast<double>(static_cast<float>(u * v))};
    values.insert(values.end(), std::begin(row), std::end(row));
  }
  return values;
}

TYPED_TEST(Tokenizer, ReturnsToTheSameTokensAfterInverse) {
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    for (const Closed closed : {Closed::left, Closed::right})
      for (const DuplicateEdges policy :
           {DuplicateEdges::keep, DuplicateEdges::drop, DuplicateEdges::merge}) {
        const auto rows = static_cast<std::int64_t>(6 + 37 * seed);
        const bool is_nasty = seed % 3 == 0;
        const auto config = TokenizerConfig{}
                                .with_bins(2 + static_cast<int>(seed) * 3)
                                .with_closed(closed)
                                .with_duplicates(policy)
                                .with_statistics(true);
        for (const DType dtype : {DType::f32, DType::f64}) {
          const auto x = is_nasty ? matrix(this->b, nasty(rows, seed), nasty_columns, dtype)
                                  : matrix(this->b, random_columns(rows, seed), 5, dtype);
          const auto [fitted, tokens] = QuantileTokenizer::fit_transform(x, config);
          const auto want = tokens.template to_vector<int>();
          for (const BinValue value : {BinValue::mean, BinValue::midpoint}) {
            const auto again = fitted.transform(fitted.inverse(tokens, value, dtype));
            EXPECT_EQ(again.template to_vector<int>(), want)
                << "seed " << seed << ", " << to_string(closed) << ", " << to_string(policy) << ", "
                << to_string(value) << ", " << to_string(dtype);
          }
        }
      }
}

TYPED_TEST(Tokenizer, InvertsIntoTheBinHoweverNarrowItIs) {
  // Heavy values in bins one ulp wide, where midpoints and means are rounded out of them.
  std::vector<double> values;
  const double heavy[] = {0.1, std::nextafter(0.1, 1), 0x1p-1074, 3 * 0x1p-1074, 1 - 0x1p-53, -0x1p-1074};
  for (const double v : heavy) values.insert(values.end(), 31, v);
  for (int i = 1; i <= 14; ++i) values.push_back(i * 0.3);
  const auto x = matrix(this->b, values, 1, DType::f64);
  for (const Closed closed : {Closed::left, Closed::right}) {
    const auto config = TokenizerConfig{}
                            .with_bins(40)
                            .with_closed(closed)
                            .with_duplicates(DuplicateEdges::merge)
                            .with_statistics(true);
    const auto [fitted, tokens] = QuantileTokenizer::fit_transform(x, config);
    const auto want = tokens.template to_vector<int>();
    for (const BinValue value : {BinValue::mean, BinValue::midpoint}) {
      const auto again = fitted.transform(fitted.inverse(tokens, value, DType::f64));
      EXPECT_EQ(again.template to_vector<int>(), want) << to_string(closed) << ", " << to_string(value);
    }
  }
}

TYPED_TEST(Tokenizer, NamesRowAndColumnOfATokenOutOfRange) {
  const auto x = matrix(this->b, nasty(50, 1), nasty_columns, DType::f32);
  const auto fitted = QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(4));
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(3 * nasty_columns), 0);
  tokens[nasty_columns + 2] = 1;  // the constant column has one bin
  const auto bad = from_vector(this->b, tokens, {3, nasty_columns});
  try {
    fitted.inverse(bad);
    FAIL() << "no error";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("row 1, column 2 'c2', token 1: has bins 0 to 0"), std::string::npos)
        << e.what();
  }
  EXPECT_THROW(fitted.inverse(bad * -1), ValueError);
  EXPECT_THROW(fitted.inverse(fitted.transform(x), BinValue::mean), ValueError);
  EXPECT_THROW(fitted.inverse(cast(bad, DType::f32)), DTypeError);
}

TYPED_TEST(Tokenizer, WidensTokensWithTheNumberOfBins) {
  const auto x = matrix(this->b, nasty(600, 2), nasty_columns, DType::f32);
  const auto narrow = QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(254));
  EXPECT_EQ(narrow.width(), TokenWidth::u8);
  EXPECT_EQ(narrow.missing_token(), 254);
  const auto wide = QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(255));
  EXPECT_EQ(wide.width(), TokenWidth::u16);
  EXPECT_EQ(wide.transform(x).dtype(), DType::u16);
  EXPECT_EQ(max(cast(wide.transform(x), DType::i32)).template item<int>(), 255);  // missing
  const QuantileTokenizer widest(narrow.config(), narrow.columns(), 65535);
  EXPECT_EQ(widest.width(), TokenWidth::i32);
  EXPECT_THROW(QuantileTokenizer(narrow.config(), narrow.columns(), std::numeric_limits<std::int64_t>::max()),
               ValueError);
}

TYPED_TEST(Tokenizer, RefusesWhatCannotBeFitted) {
  const auto x = matrix(this->b, {1, 2, 3, 4}, 2, DType::f32);
  const auto fit = [&](const TokenizerConfig& config) { return QuantileTokenizer::fit(x, config); };
  EXPECT_THROW(fit(TokenizerConfig{}.with_bins(1)), ValueError);
  EXPECT_THROW(fit(TokenizerConfig{}.with_bins(65535)), ValueError);
  EXPECT_THROW(fit(TokenizerConfig{}.with_bins(255).with_width(TokenWidth::u8)), ValueError);
  EXPECT_THROW(fit(TokenizerConfig{}.with_least_distance(nan)), ValueError);
  EXPECT_THROW(QuantileTokenizer::fit(slice(x, 0, 0, 0)), ShapeError);
  EXPECT_THROW(QuantileTokenizer::fit(reshape(x, {4})), ShapeError);
  EXPECT_THROW(QuantileTokenizer::fit(x, {}, {"one"}), ValueError);
  EXPECT_THROW(fit({}).transform(transpose(slice(x, 0, 0, 1), 0, 1)), ShapeError);
}

TEST(TokenizerBackends, AgreeBitForBit) {
  Reference reference;
  Cpu cpu;
  const auto values = nasty(3000, 21);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32}) {
    const auto config = TokenizerConfig{}.with_bins(50);
    const auto on_reference =
        QuantileTokenizer::fit_transform(matrix(reference, values, nasty_columns, dtype), config);
    const auto on_cpu = QuantileTokenizer::fit_transform(matrix(cpu, values, nasty_columns, dtype), config);
    for (std::size_t c = 0; c < nasty_columns; ++c)
      EXPECT_EQ(on_reference.first.columns()[c].edges, on_cpu.first.columns()[c].edges);
    EXPECT_EQ(on_reference.second.to_vector<int>(), on_cpu.second.to_vector<int>());
  }
}

}  // namespace
}  // namespace ferrite::testing
