// How a QuantileTokenizer bins. Every choice on which libraries disagree is an option, so that one can ask
// for the tokens of scikit-learn, of pandas or of Auto-Tabular.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/core/export.hpp"
#include "ferrite/ops/bucketize.hpp"
#include "ferrite/ops/order_statistics.hpp"

namespace ferrite::quantile_tokenizer {

/// What happens if several quantiles are equal.
///   keep   all edges stay; the bins between equal ones are empty
///   drop   each stays once; there are fewer bins
///   merge  a value that would fill more than one bin gets a bin to itself
enum class DuplicateEdges : std::uint8_t { keep, drop, merge };
FERRITE_API std::string_view to_string(DuplicateEdges policy);
constexpr int count_of(DuplicateEdges) { return 3; }

/// How the level of edge i of B bins is computed in f64, which decides ranks that fall on an element.
///   exact    i / B, rounded once
///   percent  (i (100 / B)) / 100, as np.percentile(x, np.linspace(0, 100, B + 1)): scikit-learn
///   raised   i (1 / B), and the next f64 where B times that is not i: pandas
enum class LevelRule : std::uint8_t { exact, percent, raised };
FERRITE_API std::string_view to_string(LevelRule rule);
constexpr int count_of(LevelRule) { return 3; }

/// The width of a token, which is the dtype of tensors and shards of tokens. u16 is a dtype for storage: an
/// embedding takes such tokens, arithmetic needs a cast. `smallest` is the first of the three that holds
/// every token: i32 only if a column has more categories than u16 has numbers.
enum class TokenWidth : std::uint8_t { smallest, u8, u16, i32 };
FERRITE_API std::string_view to_string(TokenWidth width);
constexpr int count_of(TokenWidth) { return 4; }

/// How NaN is coded: as a separate token, after those of all bins and categories, or as the last bin
/// (Auto-Tabular). In columns of categories, missing values always have the separate token.
enum class MissingPolicy : std::uint8_t { own_token, last_bin };
FERRITE_API std::string_view to_string(MissingPolicy policy);
constexpr int count_of(MissingPolicy) { return 2; }

/// f32: edges are rounded to the nearest f32, which may move values next to an edge (Auto-Tabular).
enum class EdgePrecision : std::uint8_t { f64, f32 };
FERRITE_API std::string_view to_string(EdgePrecision precision);
constexpr int count_of(EdgePrecision) { return 2; }

struct FERRITE_API TokenizerConfig {
  int bins = 100;
  QuantileMethod method = QuantileMethod::linear;
  Closed closed = Closed::left;
  DuplicateEdges duplicates = DuplicateEdges::drop;
  /// With `drop`: an edge no further than this from the one before it is dropped too.
  double least_distance = 0;
  LevelRule levels = LevelRule::exact;
  TokenWidth width = TokenWidth::smallest;
  MissingPolicy missing = MissingPolicy::own_token;
  EdgePrecision edge_precision = EdgePrecision::f64;
  /// Counts and means of all bins, for the report and for inverse by bin mean; they take one more pass over
  /// the data.
  bool statistics = false;

  TokenizerConfig with_bins(int v) const { return with(&TokenizerConfig::bins, v); }
  TokenizerConfig with_method(QuantileMethod v) const { return with(&TokenizerConfig::method, v); }
  TokenizerConfig with_closed(Closed v) const { return with(&TokenizerConfig::closed, v); }
  TokenizerConfig with_duplicates(DuplicateEdges v) const { return with(&TokenizerConfig::duplicates, v); }
  TokenizerConfig with_least_distance(double v) const { return with(&TokenizerConfig::least_distance, v); }
  TokenizerConfig with_levels(LevelRule v) const { return with(&TokenizerConfig::levels, v); }
  TokenizerConfig with_width(TokenWidth v) const { return with(&TokenizerConfig::width, v); }
  TokenizerConfig with_missing(MissingPolicy v) const { return with(&TokenizerConfig::missing, v); }
  TokenizerConfig with_edge_precision(EdgePrecision v) const {
    return with(&TokenizerConfig::edge_precision, v);
  }
  TokenizerConfig with_statistics(bool v) const { return with(&TokenizerConfig::statistics, v); }

  /// The tokens of KBinsDiscretizer(bins, encode="ordinal", subsample=None) of scikit-learn 1.9; earlier
  /// versions took QuantileMethod::linear.
  static TokenizerConfig like_sklearn(int bins,
                                      QuantileMethod method = QuantileMethod::averaged_inverted_cdf);
  /// The codes of qcut(x, bins, duplicates="drop") of pandas 3.1; a constant column is bin 0 here and missing
  /// there.
  static TokenizerConfig like_pandas(int bins);
  /// The tokens of Auto-Tabular's bucketize_kernel.
  static TokenizerConfig like_auto_tabular(int bins);

  /// The levels of all bins + 1 edges, 0 and 1 included.
  std::vector<double> edge_levels() const;
  /// Throws ValueError for invalid settings: bins outside [2, 65534], or [2, 254] for u8, a distance that is
  /// negative or NaN.
  void check() const;

  friend bool operator==(const TokenizerConfig&, const TokenizerConfig&) = default;

 private:
  template <class T>
  TokenizerConfig with(T TokenizerConfig::*member, T value) const {
    return detail::with(*this, member, value);
  }
};

/// The requested width or, for `smallest`, the first that holds `tokens` different tokens.
FERRITE_API TokenWidth resolve_width(TokenWidth asked, std::int64_t tokens);
/// Of tensors of tokens: the dtype of this width.
constexpr DType tensor_dtype(TokenWidth width) {
  return width == TokenWidth::u8 ? DType::u8 : width == TokenWidth::u16 ? DType::u16 : DType::i32;
}

}  // namespace ferrite::quantile_tokenizer
