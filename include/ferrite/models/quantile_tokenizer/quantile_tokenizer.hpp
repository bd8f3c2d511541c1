// QuantileTokenizer: turns numbers into the numbers of their quantile bins, column by column, and back. Edges
// come from true order statistics and comparisons are exact, so every backend gives the same tokens.
//
//   const auto tokenizer = QuantileTokenizer::fit(x, TokenizerConfig{}.with_bins(64));
//   const auto tokens = tokenizer.transform(x);        // on the backend of x
//   tokenizer.save("fit.safetensors");
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/quantile_tokenizer/column_fit.hpp"
#include "ferrite/models/quantile_tokenizer/rank_summary.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/host.hpp"

namespace ferrite::quantile_tokenizer {

/// A value. The tokens of a column are 0 to bins - 1 for its bins (fewer if edges were dropped), then
/// `missing_token` for NaN (unless MissingPolicy::last_bin) and `unknown_token`, which only tables with
/// categories use; the token before it is always reserved for missing categories.
class FERRITE_API QuantileTokenizer {
 public:
  /// # Shapes: x [rows, columns], at least one of each; any dtype. Integers are taken as f64. By default
  /// `names` are c0, c1, ..., one per column. Throws ShapeError, and ValueError for an invalid config.
  template <class B>
  static QuantileTokenizer fit(const Tensor<B>& x, const TokenizerConfig& config = {},
                               std::vector<std::string> names = {});
  /// # Shapes: x [rows, columns of the fit] -> tokens [rows, columns], u8, u16 or i32 (see TokenWidth).
  template <class B>
  Tensor<B> transform(const Tensor<B>& x) const;
  template <class B>
  static std::pair<QuantileTokenizer, Tensor<B>> fit_transform(const Tensor<B>& x,
                                                               const TokenizerConfig& config = {}) {
    QuantileTokenizer fitted = fit(x, config);
    Tensor<B> tokens = fitted.transform(x);
    return {std::move(fitted), std::move(tokens)};
  }
  /// # Shapes: tokens integer [rows, columns] -> [rows, columns]; NaN for missing and unknown. A value of a
  /// floating dtype lies in its bin if the bin holds any such value, so `transform` finds the token again. A
  /// token that its column does not have is a ValueError naming row and column; tokens that are not integers
  /// are a DTypeError. BinValue::mean needs TokenizerConfig::statistics (ValueError).
  template <class B>
  Tensor<B> inverse(const Tensor<B>& tokens, BinValue value = BinValue::midpoint,
                    DType dtype = DType::f32) const;

  /// A summary of the ranks of every column of x, f32 or f64 [rows, columns], from a few of its elements: no
  /// rank is further from a known one than this share of the rows. Tables larger than memory need it.
  template <class B>
  static std::vector<RankSummary> summarize(const Tensor<B>& x, double rank_error);

  /// One safetensors file: versioned JSON in its metadata, edges and counts in binary. Written atomically.
  void save(const std::filesystem::path& path) const;
  /// Throws IoError; ParseError for a file that is not a fit, is damaged or has a newer version.
  static QuantileTokenizer load(const std::filesystem::path& path);

  /// From parts that were computed elsewhere; ValueError if they do not match. `regular_tokens`, the number
  /// of the first special token, is at least the number of bins; tables with more categories than bins raise
  /// it.
  QuantileTokenizer(TokenizerConfig config, std::vector<ColumnFit> columns, std::int64_t regular_tokens = 0);

  const TokenizerConfig& config() const { return config_; }
  const std::vector<ColumnFit>& columns() const { return columns_; }
  std::int64_t missing_token() const {
    return config_.missing == MissingPolicy::own_token ? regular_tokens_ : config_.bins - 1;
  }
  std::int64_t unknown_token() const { return regular_tokens_ + 1; }
  std::int64_t token_count() const { return regular_tokens_ + 2; }
  TokenWidth width() const { return resolve_width(config_.width, token_count()); }

  /// One line per column: counts, range, bins, occupancy.
  std::string report() const;

 private:
  template <class B>
  static Tensor<B> as_real(const Tensor<B>& x) {
    if (x.dtype() == DType::f32 || x.dtype() == DType::f64) return x;
    return cast(x, is_floating(x.dtype()) ? DType::f32 : DType::f64);
  }
  template <class B>
  void measure_bins(const Tensor<B>& x);
  template <class B>
  Tensor<B> edge_tensor(B& b, const std::vector<std::vector<double>>& rows) const;

  void check_columns(std::string_view what, const Shape& shape) const;
  static void check_token_dtype(DType dtype);
  std::vector<std::vector<double>> edge_rows() const;
  std::vector<double> value_table(BinValue value, DType dtype) const;
  std::vector<std::int64_t> bin_limits() const;
  void set_statistics(const std::vector<std::int64_t>& counts, const std::vector<std::int64_t>& finite,
                      const std::vector<double>& sums);
  [[noreturn]] void reject_token(std::int64_t row, std::int64_t column, std::int64_t token) const;

  TokenizerConfig config_;
  std::vector<ColumnFit> columns_;
  std::int64_t regular_tokens_;
};

namespace detail {
/// Rows per chunk in a pass that makes temporaries.
inline constexpr std::int64_t chunk_rows = 1 << 18;
/// Columns named and checked against a matrix of this shape.
FERRITE_API std::vector<ColumnFit> named_columns(const Shape& shape, std::vector<std::string> names);
/// Dense rows of equal length, with NaN in unused places.
FERRITE_API std::vector<double> padded(const std::vector<std::vector<double>>& rows, std::int64_t* width);
/// The summary of elements found by order_statistics with inverted_cdf at these levels.
FERRITE_API RankSummary summary_of(std::span<const double> levels, const double* values, std::int64_t count);
FERRITE_API std::vector<double> sampling_levels(const RankSketch& sketch, std::int64_t rows);

template <class B, class F>
void for_each_chunk(const Tensor<B>& x, F&& f) {
  for (std::int64_t row = 0; row < x.size(0); row += chunk_rows)
    f(slice(x, 0, row, std::min(x.size(0), row + chunk_rows)));
}
}  // namespace detail

template <class B>
Tensor<B> QuantileTokenizer::edge_tensor(B& b, const std::vector<std::vector<double>>& rows) const {
  std::int64_t width = 0;
  const std::vector<double> edges = detail::padded(rows, &width);
  return from_vector(b, edges, {static_cast<std::int64_t>(rows.size()), width});
}

template <class B>
QuantileTokenizer QuantileTokenizer::fit(const Tensor<B>& x, const TokenizerConfig& config,
                                         std::vector<std::string> names) {
  config.check();
  std::vector<ColumnFit> columns = detail::named_columns(x.shape(), std::move(names));
  const Tensor<B> values = as_real(x);
  const std::vector<double> levels = config.edge_levels();
  const auto found = order_statistics(values, from_vector(x.backend(), levels), config.method);
  const auto lower = found.lower.template to_vector<double>(),
             upper = found.upper.template to_vector<double>();
  const auto count = found.count.template to_vector<std::int64_t>();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::vector<double> quantiles;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const std::size_t at = c * levels.size() + i;
      const double weight = count[c] ? quantile_position(config.method, levels[i], count[c]).weight : 0;
      quantiles.push_back(interpolate_quantile(lower[at], upper[at], weight));
    }
    columns[c].count = count[c];
    columns[c].missing = x.size(0) - columns[c].count;
    set_edges(columns[c], std::move(quantiles), config);
  }
  QuantileTokenizer fitted(config, std::move(columns));
  if (config.statistics) fitted.measure_bins(values);
  return fitted;
}

template <class B>
std::vector<RankSummary> QuantileTokenizer::summarize(const Tensor<B>& x, double rank_error) {
  std::vector<RankSketch> sketches(static_cast<std::size_t>(x.size(1)), RankSketch(rank_error));
  detail::for_each_chunk(x, [&](const Tensor<B>& chunk) {
    const auto levels = detail::sampling_levels(sketches[0], chunk.size(0));
    const auto found =
        order_statistics(chunk, from_vector(x.backend(), levels), QuantileMethod::inverted_cdf);
    const auto values = found.lower.template to_vector<double>();
    const auto count = found.count.template to_vector<std::int64_t>();
    parallel_for(x.size(1), [&](std::int64_t column) {
      const auto c = static_cast<std::size_t>(column);
      sketches[c].add(detail::summary_of(levels, values.data() + c * levels.size(), count[c]));
    });
  });
  std::vector<RankSummary> summaries(sketches.size());
  parallel_for(x.size(1), [&](std::int64_t c) {
    summaries[static_cast<std::size_t>(c)] = sketches[static_cast<std::size_t>(c)].summary();
  });
  return summaries;
}

template <class B>
Tensor<B> QuantileTokenizer::transform(const Tensor<B>& x) const {
  check_columns("transform", x.shape());
  return bucketize(as_real(x), edge_tensor(x.backend(), edge_rows()), config_.closed, missing_token(),
                   tensor_dtype(width()));
}

template <class B>
void QuantileTokenizer::measure_bins(const Tensor<B>& x) {
  B& b = x.backend();
  const Tensor<B> edges = edge_tensor(b, edge_rows());
  const std::int64_t bins = edges.size(1) + 1;
  Tensor<B> sums = zeros(b, {bins + 1, x.size(1)}, DType::f64), finite = sums;  // the last row takes the NaN
  Tensor<B> counts = cast(sums, DType::i64);
  detail::for_each_chunk(x, [&](const Tensor<B>& chunk) {
    const Tensor<B> bin = cast(bucketize(chunk, edges, config_.closed, bins), DType::i64);
    const Tensor<B> is_finite = isfinite(chunk);
    counts = scatter_add(counts, 0, bin, ones(b, chunk.shape(), DType::i64));
    sums = scatter_add(sums, 0, bin, cast(where(is_finite, chunk, 0), DType::f64));
    finite = scatter_add(finite, 0, bin, cast(is_finite, DType::f64));
  });
  const auto by_column = [&](const Tensor<B>& t) {
    return contiguous(transpose(slice(t, 0, 0, bins), 0, 1));
  };
  set_statistics(by_column(counts).template to_vector<std::int64_t>(),
                 by_column(finite).template to_vector<std::int64_t>(),
                 by_column(sums).template to_vector<double>());
}

template <class B>
Tensor<B> QuantileTokenizer::inverse(const Tensor<B>& tokens, BinValue value, DType dtype) const {
  check_columns("inverse", tokens.shape());
  check_token_dtype(tokens.dtype());
  B& b = tokens.backend();
  const auto columns = static_cast<std::int64_t>(columns_.size());
  const Tensor<B> token = cast(tokens, DType::i64), limit = from_vector(b, bin_limits());
  const Tensor<B> special = logical_or(token == missing_token(), token == unknown_token());
  const Tensor<B> wrong = logical_or(token < 0, logical_and(token >= limit, logical_not(special)));
  if (tokens.numel() > 0 && any(wrong).template item<bool>()) {
    const auto at = argmax(reshape(cast(wrong, DType::u8), {wrong.numel()}), 0).template item<std::int64_t>();
    reject_token(at / columns, at % columns,
                 select(reshape(token, {token.numel()}), 0, at).template item<std::int64_t>());
  }
  const Tensor<B> table = cast(from_vector(b, value_table(value, dtype), {token_count(), columns}), dtype);
  return gather(table, 0, token);
}

}  // namespace ferrite::quantile_tokenizer
