// The part of QuantileTokenizer that works on plain numbers: checks, tables, statistics, merging.
#include "ferrite/models/quantile_tokenizer/quantile_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::quantile_tokenizer {

namespace {
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The next number of a floating type; x must not be NaN, nor the last in that direction.
template <class T>
T next_number(T x, bool up) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits bits = std::bit_cast<Bits>(x);
  const bool negative = (bits & sign) != 0;
  if (negative != up) return std::bit_cast<T>(static_cast<Bits>(bits + 1));
  if ((bits & ~sign) != 0) return std::bit_cast<T>(static_cast<Bits>(bits - 1));
  return std::bit_cast<T>(static_cast<Bits>(up ? 1 : sign + 1));  // zeros are one number
}

/// The number of the dtype next to `value` that lies in the range, if there is one.
double rounded_into(BinRange range, double value, DType dtype) {
  if (value != value || dtype == DType::f64 || !is_floating(dtype)) return value;
  return visit_dtype(dtype, [&]<class T>() -> double {
    if constexpr (!is_floating(dtype_of<T>) || sizeof(T) == 8) {
      return value;
    } else {
      const T nearest = convert<T>(value);
      if (range.holds(convert<double>(nearest))) return convert<double>(nearest);
      const T other = next_number(nearest, convert<double>(nearest) < range.least);
      return convert<double>(range.holds(convert<double>(other)) ? other : nearest);
    }
  });
}
}  // namespace

namespace detail {

std::vector<ColumnFit> named_columns(const Shape& shape, std::vector<std::string> names) {
  if (shape.rank() != 2 || shape[0] < 1 || shape[1] < 1)
    throw ShapeError(fmt::format("[tokenizer.fit] x {}: needs [rows, columns], at least one of each",
                                 ferrite::to_string(shape)));
  if (!names.empty() && static_cast<std::int64_t>(names.size()) != shape[1])
    throw ValueError(
        fmt::format("[tokenizer.fit] {} names for {} columns: needs one each", names.size(), shape[1]));
  std::vector<ColumnFit> columns(static_cast<std::size_t>(shape[1]));
  for (std::size_t c = 0; c < columns.size(); ++c)
    columns[c].name = names.empty() ? fmt::format("c{}", c) : std::move(names[c]);
  return columns;
}

std::vector<double> padded(const std::vector<std::vector<double>>& rows, std::int64_t* width) {
  std::size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  std::vector<double> all(rows.size() * longest, not_a_number);
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy(rows[r].begin(), rows[r].end(), all.begin() + static_cast<std::ptrdiff_t>(r * longest));
  *width = static_cast<std::int64_t>(longest);
  return all;
}

std::vector<double> sampling_levels(const RankSketch& sketch, std::int64_t rows) {
  std::vector<double> levels{0};
  for (const std::int64_t rank : sketch.ranks_of_interest(rows))  // half a rank away from any rounding
    levels.push_back((static_cast<double>(rank) + 0.5) / static_cast<double>(rows));
  levels.push_back(1);
  return levels;
}

RankSummary summary_of(std::span<const double> levels, const double* values, std::int64_t count) {
  std::vector<double> kept;
  std::vector<std::int64_t> ranks;
  for (std::size_t i = 0; count > 0 && i < levels.size(); ++i) {
    const std::int64_t rank = quantile_position(QuantileMethod::inverted_cdf, levels[i], count).lower;
    if (!ranks.empty() && ranks.back() == rank) continue;
    ranks.push_back(rank);
    kept.push_back(values[i]);
  }
  return RankSummary::of_ranks(kept, ranks, count);
}

}  // namespace detail

QuantileTokenizer::QuantileTokenizer(TokenizerConfig config, std::vector<ColumnFit> columns,
                                     std::int64_t regular_tokens)
    : config_(config),
      columns_(std::move(columns)),
      regular_tokens_(std::max<std::int64_t>(config.bins, regular_tokens)) {
  config_.check();
  const std::int64_t most = config_.width == TokenWidth::u8    ? 256
                            : config_.width == TokenWidth::u16 ? 65536
                                                               : std::numeric_limits<std::int32_t>::max();
  if (regular_tokens_ > most - 2)
    throw ValueError(fmt::format("[tokenizer] {} tokens beside missing and unknown, width {}: at most {}",
                                 regular_tokens_, to_string(config_.width), most - 2));
  for (const ColumnFit& c : columns_) {
    const bool range = c.count > 0 ? c.least <= c.greatest : std::isnan(c.least) && std::isnan(c.greatest);
    const bool counts = c.count >= 0 && c.missing >= 0 &&
                        std::all_of(c.bin_counts.begin(), c.bin_counts.end(),
                                    [&](std::int64_t n) { return n >= 0 && n <= c.count; });
    if (!range || !counts)
      throw ValueError(
          fmt::format("[tokenizer] column '{}', {} values from {} to {} and {} missing: needs "
                      "counts from 0 on, and ends in order unless there is no value",
                      printable(c.name), c.count, c.least, c.greatest, c.missing));
    const bool ascending = std::is_sorted(c.edges.begin(), c.edges.end()) &&
                           std::none_of(c.edges.begin(), c.edges.end(), [](double e) { return e != e; });
    const auto fits = [&](std::size_t size) { return size == 0 || size == c.edges.size() + 1; };
    if (!ascending || c.bins() > config_.bins || !fits(c.bin_counts.size()) || !fits(c.bin_means.size()))
      throw ValueError(fmt::format(
          "[tokenizer] column '{}' with {} edges, {} counts and {} means: needs at "
          "most {} edges in order, and a count and a mean per bin or none",
          printable(c.name), c.edges.size(), c.bin_counts.size(), c.bin_means.size(), config_.bins - 1));
  }
}

void QuantileTokenizer::check_columns(std::string_view what, const Shape& shape) const {
  if (shape.rank() == 2 && shape[1] == static_cast<std::int64_t>(columns_.size())) return;
  throw ShapeError(fmt::format("[tokenizer.{}] {}: needs [rows, {}], the columns of the fit", what,
                               ferrite::to_string(shape), columns_.size()));
}

void QuantileTokenizer::check_token_dtype(DType dtype) {
  if (!is_integer(dtype))
    throw DTypeError(
        fmt::format("[tokenizer.inverse] tokens of {}: needs an integer dtype", ferrite::to_string(dtype)));
}

std::vector<std::vector<double>> QuantileTokenizer::edge_rows() const {
  std::vector<std::vector<double>> rows;
  for (const ColumnFit& column : columns_) rows.push_back(column.edges);
  return rows;
}

std::vector<std::int64_t> QuantileTokenizer::bin_limits() const {
  std::vector<std::int64_t> limits;
  for (const ColumnFit& column : columns_) limits.push_back(column.bins());
  return limits;
}

std::vector<double> QuantileTokenizer::value_table(BinValue value, DType dtype) const {
  std::vector<double> table(static_cast<std::size_t>(token_count()) * columns_.size(), not_a_number);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const ColumnFit& column = columns_[c];
    for (std::int64_t bin = 0; bin < column.bins(); ++bin)
      table[static_cast<std::size_t>(bin) * columns_.size() + c] = rounded_into(
          column.bin_range(bin, config_.closed), column.value_of(bin, value, config_.closed), dtype);
  }
  return table;
}

void QuantileTokenizer::reject_token(std::int64_t row, std::int64_t column, std::int64_t token) const {
  const ColumnFit& c = columns_[static_cast<std::size_t>(column)];
  throw ValueError(
      fmt::format("[tokenizer.inverse] row {}, column {} '{}', token {}: has bins 0 to {}, {} for "
                  "missing and {} for unknown values",
                  row, column, printable(c.name), token, c.bins() - 1, missing_token(), unknown_token()));
}

void QuantileTokenizer::set_statistics(const std::vector<std::int64_t>& counts,
                                       const std::vector<std::int64_t>& finite,
                                       const std::vector<double>& sums) {
  const std::size_t width = counts.size() / columns_.size();
  for (std::size_t c = 0; c < columns_.size(); ++c)
    for (std::size_t bin = 0; bin <= columns_[c].edges.size(); ++bin) {
      const std::size_t at = c * width + bin;
      columns_[c].bin_counts.push_back(counts[at]);
      columns_[c].bin_means.push_back(finite[at] ? sums[at] / static_cast<double>(finite[at]) : not_a_number);
    }
}

std::string QuantileTokenizer::report() const {
  std::size_t name_width = 6;
  for (const ColumnFit& c : columns_) name_width = std::max(name_width, printable(c.name).size());
  std::string text = fmt::format("{:<{}}  {:>12}  {:>10}  {:>12}  {:>12}  {:>5}  {:>9}\n", "column",
                                 name_width, "values", "missing", "least", "greatest", "bins", "fullest");
  for (const ColumnFit& c : columns_) {
    const double share = c.largest_share();
    text += fmt::format("{:<{}}  {:>12}  {:>10}  {:>12.6g}  {:>12.6g}  {:>5}  {:>9}\n", printable(c.name),
                        name_width, c.count, c.missing, c.least, c.greatest, c.bins(),
                        std::isnan(share) ? "-" : fmt::format("{:.2f}%", 100 * share));
  }
  return text;
}

}  // namespace ferrite::quantile_tokenizer
