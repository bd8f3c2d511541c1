// TableTokenizer::fit: one pass if the numbers fit into memory; otherwise ranks are summarised in the first
// pass, refined to exact order statistics in a second, and bins are counted in a third.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/quantile_tokenizer/table_tokenizer.hpp"
#include "models/quantile_tokenizer/column_counts.hpp"
#include "models/quantile_tokenizer/streamed_fit.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

template <class F>
void for_each_column(std::size_t count, F&& f) {
  parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t i) { f(static_cast<std::size_t>(i)); });
}

class TableFitter {
 public:
  using Chunk = std::shared_ptr<const TableChunk>;

  TableFitter(TableSource& source, TableEngine& engine, const TableFitConfig& config,
              const TableProgress& progress)
      : source_(source), engine_(engine), config_(config), progress_(progress) {
    config_.tokenizer.check();
    if (config_.most_categories < 1 || config_.integer_categories < 0 || config_.memory_limit < 0)
      throw ValueError("[tokenizer.fit] most_categories must be at least 1, the other limits at least 0");
    config_.integer_categories = std::min(config_.integer_categories, config_.most_categories);
    for (std::size_t c = 0; c < source.kinds().size(); ++c)
      (source.kinds()[c] == FieldKind::text ? texts_ : numbers_).push_back(c);
    integers_.resize(numbers_.size());
    text_counts_.resize(texts_.size());
    sketch_error_ = 1.0 / (16.0 * config_.tokenizer.bins);
    sketches_.assign(numbers_.size(), RankSketch(sketch_error_));
  }

  TableTokenizer run() {
    for_each_chunk("reading", [this](const Chunk& chunk) { take(chunk); });
    if (streamed_) summarize();
    std::vector<TableColumn> columns(source_.names().size());
    std::vector<CategoryFit> categories;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const ColumnKind kind =
          text_counts_[i].all_dates() ? ColumnKind::date_category : ColumnKind::text_category;
      columns[texts_[i]] = {source_.names()[texts_[i]], kind, categories.size()};
      categories.push_back(text_counts_[i].category(config_.most_categories));
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const bool category = is_plain(i) && integers_[i].is_category();
      columns[numbers_[i]] = {name_of(i), category ? ColumnKind::integer_category : binned_kind(i),
                              category ? categories.size() : chosen_.size()};
      if (category)
        categories.push_back(integers_[i].category());
      else
        chosen_.push_back(i);
    }
    std::int64_t most = 0;
    for (const CategoryFit& c : categories) most = std::max(most, static_cast<std::int64_t>(c.names.size()));
    return {std::move(columns), QuantileTokenizer(config_.tokenizer, fit_numbers(), most),
            std::move(categories), source_.missing()};
  }

 private:
  template <class F>
  void for_each_chunk(std::string_view stage, F&& f) {
    source_.rewind();
    while (const Chunk chunk = source_.next()) {
      f(chunk);
      if (progress_) progress_(stage, source_.progress());
    }
  }

  /// Of a column of numbers: that they are not dates.
  bool is_plain(std::size_t i) const { return source_.kinds()[numbers_[i]] == FieldKind::number; }
  ColumnKind binned_kind(std::size_t i) const {
    const FieldKind kind = source_.kinds()[numbers_[i]];
    return kind == FieldKind::date        ? ColumnKind::date
           : kind == FieldKind::date_time ? ColumnKind::date_time
                                          : ColumnKind::numeric;
  }

  void take(const Chunk& chunk) {
    for_each_column(texts_.size(), [&](std::size_t i) { text_counts_[i].add(chunk->texts[texts_[i]]); });
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (text_counts_[i].size() > config_.most_texts)
        throw ValueError(fmt::format(
            "[tokenizer.fit] column '{}', rows up to {}: has more than {} different "
            "texts; drop it, it is not a category",
            printable(source_.names()[texts_[i]]), chunk->first_row + chunk->rows, config_.most_texts));
    }
    for_each_column(numbers_.size(), [&](std::size_t i) {
      if (is_plain(i)) integers_[i].add(chunk->numbers[numbers_[i]], config_.integer_categories);
    });
    rows_ += chunk->rows;
    kept_.push_back(texts_.empty() ? chunk : numbers_alone(*chunk));
    kept_rows_ += chunk->rows;
    if (kept_rows_ * static_cast<std::int64_t>(8 * numbers_.size()) > config_.memory_limit) summarize();
  }

  /// Texts are counted by now, and no limit bounds them.
  static Chunk numbers_alone(const TableChunk& chunk) {
    auto copy = std::make_shared<TableChunk>();
    copy->rows = chunk.rows;
    copy->numbers.resize(chunk.numbers.size());
    for_each_column(copy->numbers.size(), [&](std::size_t c) { copy->numbers[c] = chunk.numbers[c]; });
    return copy;
  }

  /// Moves what is kept into the sketches.
  void summarize() {
    streamed_ = true;
    std::vector<std::size_t> all(numbers_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    for_each_group(all, [&](std::span<const std::size_t> group) {
      auto summaries = engine_.summarize(matrix(group), kept_rows_, sketch_error_);
      for_each_column(summaries.size(),
                      [&](std::size_t i) { sketches_[group[i]].add(std::move(summaries[i])); });
    });
    kept_.clear();
    kept_rows_ = 0;
  }

  /// Calls f with a few columns at a time: enough to keep the threads busy, few enough for a small copy.
  template <class F>
  void for_each_group(std::span<const std::size_t> which, F&& f) const {
    constexpr std::int64_t group_bytes = 16 << 20;
    const auto size = static_cast<std::size_t>(
        std::max<std::int64_t>(group_bytes / (8 * std::max<std::int64_t>(kept_rows_, 1)), num_threads()));
    for (std::size_t i = 0; i < which.size() && kept_rows_ > 0; i += size)
      f(which.subspan(i, std::min(size, which.size() - i)));
  }

  /// Columns of what is kept, one after the other.
  std::vector<double> matrix(std::span<const std::size_t> which) const {
    std::vector<double> all(which.size() * static_cast<std::size_t>(kept_rows_));
    for_each_column(which.size(), [&](std::size_t k) {
      double* next = all.data() + k * static_cast<std::size_t>(kept_rows_);
      for (const Chunk& chunk : kept_) {
        const std::vector<double>& values = chunk->numbers[numbers_[which[k]]];
        next = std::copy(values.begin(), values.end(), next);
      }
    });
    return all;
  }

  /// Of a column of numbers.
  const std::string& name_of(std::size_t i) const { return source_.names()[numbers_[i]]; }

  std::vector<ColumnFit> fit_numbers() {
    if (rows_ == 0) throw ParseError("[tokenizer.fit] no rows: at least one is needed");
    if (chosen_.empty()) return {};
    if (streamed_) return fit_streamed();
    std::vector<ColumnFit> fits;
    for_each_group(chosen_, [&](std::span<const std::size_t> group) {
      for (ColumnFit& fit : fit_group(group)) fits.push_back(std::move(fit));
    });
    return fits;
  }

  /// For columns that are kept. Bins are counted here, with one column per thread: the backend counts bins of
  /// tensors, which pays only for much larger ones.
  std::vector<ColumnFit> fit_group(std::span<const std::size_t> group) const {
    std::vector<std::string> names;
    for (const std::size_t i : group) names.push_back(name_of(i));
    const std::vector<double> values = matrix(group);
    const TokenizerConfig config = config_.tokenizer.with_statistics(false);
    if (!config_.tokenizer.statistics) return engine_.fit(values, kept_rows_, config, names).columns();
    const auto [fitted, tokens] = engine_.fit_transform(values, kept_rows_, config, names);
    std::vector<ColumnFit> fits = fitted.columns();
    for_each_column(fits.size(), [&, &tokens = tokens](std::size_t k) {
      const auto rows = static_cast<std::size_t>(kept_rows_);
      BinStatistics statistics(fits[k].edges.size() + 1);
      statistics.add(std::span(values).subspan(k * rows, rows), tokens, k);
      statistics.store(fits[k]);
    });
    return fits;
  }

  std::vector<ColumnFit> fit_streamed() {
    const TokenizerConfig& config = config_.tokenizer;
    std::vector<ColumnFit> fits(chosen_.size());
    std::vector<RankSummary> summaries;
    std::vector<RankRefiner> refiners;
    for (const std::size_t i : chosen_) summaries.push_back(sketches_[i].summary());
    sketches_.clear();
    for (const RankSummary& summary : summaries) refiners.emplace_back(summary, config);
    for_each_chunk("refining", [&](const Chunk& chunk) {
      for_each_column(fits.size(), [&](std::size_t k) { refiners[k].add(column(*chunk, k)); });
    });
    for_each_column(fits.size(), [&](std::size_t k) {
      fits[k].name = name_of(chosen_[k]);
      fits[k].count = summaries[k].count();
      fits[k].missing = rows_ - fits[k].count;
      set_edges(fits[k], refiners[k].quantiles(), config);
    });
    if (config.statistics) count_streamed(fits);
    return fits;
  }

  void count_streamed(std::vector<ColumnFit>& fits) {
    const QuantileTokenizer fitted(config_.tokenizer, fits);
    std::vector<BinStatistics> statistics;
    for (const ColumnFit& fit : fits) statistics.emplace_back(fit.edges.size() + 1);
    for_each_chunk("counting", [&](const Chunk& chunk) {
      std::vector<double> values;
      for (std::size_t k = 0; k < fits.size(); ++k)
        values.insert(values.end(), column(*chunk, k).begin(), column(*chunk, k).end());
      const HostTensor tokens = engine_.transform(fitted, values, chunk->rows);
      for_each_column(fits.size(), [&](std::size_t k) { statistics[k].add(column(*chunk, k), tokens, k); });
    });
    for (std::size_t k = 0; k < fits.size(); ++k) statistics[k].store(fits[k]);
  }

  /// Of those that are binned.
  const std::vector<double>& column(const TableChunk& chunk, std::size_t k) const {
    return chunk.numbers[numbers_[chosen_[k]]];
  }

  TableSource& source_;
  TableEngine& engine_;
  TableFitConfig config_;
  const TableProgress& progress_;
  std::vector<std::size_t> numbers_, texts_;  // columns of the source, by kind of field
  std::vector<std::size_t> chosen_;           // of numbers_: those that are binned
  std::vector<Chunk> kept_;                   // what was read and is not summarised
  std::int64_t kept_rows_ = 0;
  std::vector<IntegerCounts> integers_;
  std::vector<TextCounts> text_counts_;
  std::vector<RankSketch> sketches_;
  double sketch_error_ = 0;
  bool streamed_ = false;
  std::int64_t rows_ = 0;
};

}  // namespace

TableTokenizer TableTokenizer::fit(TableSource& source, TableEngine& engine, const TableFitConfig& config,
                                   const TableProgress& progress) {
  return TableFitter(source, engine, config, progress).run();
}

}  // namespace ferrite::quantile_tokenizer
