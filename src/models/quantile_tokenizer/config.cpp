#include "ferrite/models/quantile_tokenizer/config.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ferrite::quantile_tokenizer {

std::string_view to_string(DuplicateEdges policy) {
  static constexpr std::string_view names[] = {"keep", "drop", "merge"};
  return names[static_cast<std::size_t>(policy)];
}
std::string_view to_string(LevelRule rule) {
  static constexpr std::string_view names[] = {"exact", "percent", "raised"};
  return names[static_cast<std::size_t>(rule)];
}
std::string_view to_string(TokenWidth width) {
  static constexpr std::string_view names[] = {"smallest", "u8", "u16", "i32"};
  return names[static_cast<std::size_t>(width)];
}
std::string_view to_string(MissingPolicy policy) {
  return policy == MissingPolicy::own_token ? "own_token" : "last_bin";
}
std::string_view to_string(EdgePrecision precision) {
  return precision == EdgePrecision::f64 ? "f64" : "f32";
}

TokenizerConfig TokenizerConfig::like_sklearn(int bins, QuantileMethod method) {
  return TokenizerConfig{}
      .with_bins(bins)
      .with_method(method)
      .with_levels(LevelRule::percent)
      .with_least_distance(1e-8);
}

TokenizerConfig TokenizerConfig::like_pandas(int bins) {
  return TokenizerConfig{}.with_bins(bins).with_closed(Closed::right).with_levels(LevelRule::raised);
}

TokenizerConfig TokenizerConfig::like_auto_tabular(int bins) {
  return TokenizerConfig{}
      .with_bins(bins)
      .with_levels(LevelRule::percent)
      .with_duplicates(DuplicateEdges::keep)
      .with_missing(MissingPolicy::last_bin)
      .with_edge_precision(EdgePrecision::f32)
      .with_width(TokenWidth::i32);
}

namespace {
double raised(double level, int i, int bins) {
  return bins * level == i ? level : std::nextafter(level, 1.0);
}
}  // namespace

std::vector<double> TokenizerConfig::edge_levels() const {
  std::vector<double> edges;
  for (int i = 0; i < bins; ++i) {
    if (levels == LevelRule::exact)
      edges.push_back(static_cast<double>(i) / bins);
    else if (levels == LevelRule::percent)
      edges.push_back(i * (100.0 / bins) / 100);
    else
      edges.push_back(raised(i * (1.0 / bins), i, bins));
  }
  edges.push_back(1);
  return edges;
}

void TokenizerConfig::check() const {
  const int most = width == TokenWidth::u8 ? 254 : 65534;
  if (bins < 2 || bins > most)
    throw ValueError(
        fmt::format("[tokenizer] {} bins, width {}: 2 to {} are possible, beside the tokens for missing and "
                    "unknown values",
                    bins, to_string(width), most));
  if (!(least_distance >= 0))
    throw ValueError(
        fmt::format("[tokenizer] least distance {} of edges: cannot be negative", least_distance));
}

TokenWidth resolve_width(TokenWidth asked, std::int64_t tokens) {
  if (asked != TokenWidth::smallest) return asked;
  return tokens <= 256 ? TokenWidth::u8 : tokens <= 65536 ? TokenWidth::u16 : TokenWidth::i32;
}

}  // namespace ferrite::quantile_tokenizer
