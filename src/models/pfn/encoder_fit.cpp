// TableEncoder::fit: what becomes of every column.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "models/pfn/encoder_state.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::pfn::detail {

namespace {

using quantile_tokenizer::printable;
using Names = std::vector<std::string>;
using NameSet = std::unordered_set<std::string_view>;

template <class F>
void for_each_index(std::size_t count, F&& f) {
  parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t i) { f(static_cast<std::size_t>(i)); });
}

class Fitter {
 public:
  Fitter(const Table& train, const EncoderConfig& config) : config_(config) {
    check_names(train, config.categories);
    check_names(train, config.drop);
    if (config.most_columns < 1 || config.most_categories < 1 || config.most_classes < 2)
      throw ValueError(
          "[pfn.fit] most_columns and most_categories must be at least 1, most_classes at least 2");
  }

  EncoderState run(const Table& table, const std::string& target) {
    state_.target = fit_target(table, target, config_, state_.notices);
    EncodedTable targets;
    targets.task = state_.target.task;
    targets.rows = table.rows();
    set_targets(targets, *table.find(target), state_.target);
    const std::vector<std::int64_t> rows = targets.labelled_rows();
    const bool all = static_cast<std::int64_t>(rows.size()) == table.rows();
    const Table taken = all ? Table() : table.take(rows);
    const Table& train = all ? table : taken;
    fit_columns(train);
    if (static_cast<std::int64_t>(state_.fits.size()) > config_.most_columns)
      choose_columns(train, all ? targets : targets.take(rows));
    for (const FeatureFit& fit : state_.fits) state_.features.push_back(fit.feature());
    return std::move(state_);
  }

 private:
  static void check_names(const Table& train, const Names& names) {
    for (const std::string& name : names)
      if (!train.find(name))
        throw ValueError(
            fmt::format("[pfn.fit] column '{}': the options name it and the table does not have "
                        "it; correct the name",
                        printable(name)));
  }

  void fit_columns(const Table& train) {
    const NameSet dropped(config_.drop.begin(), config_.drop.end());
    const NameSet categories(config_.categories.begin(), config_.categories.end());
    std::vector<const RawColumn*> columns;
    for (const RawColumn& column : train.columns()) {
      if (column.name == state_.target.name) continue;
      if (dropped.contains(column.name))
        state_.unused.push_back(column.name);
      else
        columns.push_back(&column);
    }
    std::vector<ColumnVerdict> verdicts(columns.size());
    for_each_index(columns.size(), [&](std::size_t i) {
      verdicts[i] = fit_column(*columns[i], config_, categories.contains(columns[i]->name));
    });
    Names empty, constant, identifier, infinite, joined, differing, ambiguous;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& name = columns[i]->name;
      ColumnVerdict& verdict = verdicts[i];
      using Verdict = ColumnVerdict;
      if (verdict.kind == Verdict::empty) empty.push_back(name);
      if (verdict.kind == Verdict::constant) constant.push_back(name);
      if (verdict.kind == Verdict::identifier) identifier.push_back(name);
      if (verdict.kind != Verdict::used) state_.unused.push_back(name);
      if (verdict.infinite > 0) infinite.push_back(name);
      if (verdict.joined > 0) joined.push_back(name);
      if (verdict.no_categories) differing.push_back(name);
      if (verdict.ambiguous_dates) ambiguous.push_back(name);
      std::move(verdict.features.begin(), verdict.features.end(), std::back_inserter(state_.fits));
    }
    Names& notices = state_.notices;
    for (const RawColumn* column : columns) {
      const std::string note = categories.contains(column->name) ? "" : spoilt_values(*column);
      if (!note.empty()) notices.push_back(fmt::format("column '{}' {}", printable(column->name), note));
    }
    tell(notices, empty, "has no values", "have no values", "dropped");
    tell(notices, constant, "is constant", "are constant", "dropped");
    tell(notices, identifier, "has another value in every row", "have another value in every row",
         "dropped, as names and numbers of rows");
    tell(notices, differing, "has another value in every row", "have another value in every row",
         "used as numbers or dates, not as categories");
    tell(notices, infinite, "has infinities", "have infinities", "they are taken as missing");
    tell(notices, joined, fmt::format("has more than {} categories", config_.most_categories),
         fmt::format("have more than {} categories", config_.most_categories),
         "the most frequent are kept and all others are one");
    tell(notices, ambiguous, "has dates that could be read both ways",
         "have dates that could be read both ways",
         "the month is taken to come first; --day-first (EncoderConfig::day_first) reads them the other way");
    if (state_.fits.empty())
      throw ValueError(fmt::format(
          "[pfn.fit] target '{}': no column is left to predict it from: {}; add columns that vary",
          printable(state_.target.name),
          !columns.empty()  ? "all others are constant, empty or names of rows"
          : dropped.empty() ? "the table has no other"
                            : "all others are dropped"));
  }

  /// Keeps those with the highest scores, in the order of the table.
  void choose_columns(const Table& train, const EncodedTable& targets) {
    std::vector<double> scores(state_.fits.size());
    for_each_index(scores.size(), [&](std::size_t i) {
      const FeatureFit& fit = state_.fits[i];
      const bool is_category = fit.kind == FeatureKind::category;
      LostCells lost;
      const std::vector<float> column = encode(*train.find(fit.column), fit, lost);
      scores[i] = targets.task == Task::classification
                      ? class_score(column, is_category, targets.classes,
                                    static_cast<std::int64_t>(state_.target.class_names.size()))
                      : variance_score(column, is_category, targets.targets);
    });
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    order.resize(static_cast<std::size_t>(config_.most_columns));
    std::sort(order.begin(), order.end());
    NameSet kept_names;
    std::vector<FeatureFit> kept;
    for (const std::size_t i : order) kept.push_back(state_.fits[i]);
    for (const FeatureFit& fit : kept) kept_names.insert(fit.column);
    for (const FeatureFit& fit : state_.fits)
      if (!kept_names.contains(fit.column) &&
          (state_.unused.empty() || state_.unused.back() != fit.column))  // parts of a date stand together
        state_.unused.push_back(fit.column);
    state_.notices.push_back(fmt::format(
        "of {} columns, the {} that tell most about '{}' are used: those with the highest {} on the train "
        "rows",
        scores.size(), kept.size(), printable(state_.target.name),
        targets.task == Task::classification
            ? "mutual information with its classes"
            : "share of its variance that ten quantiles of the column explain"));
    state_.fits = std::move(kept);
  }

  const EncoderConfig& config_;
  EncoderState state_;
};

}  // namespace

std::string_view plural(std::size_t count, std::string_view one, std::string_view many) {
  return count == 1 ? one : many;
}

void tell(Names& notices, const Names& names, std::string_view is, std::string_view are,
          std::string_view consequence) {
  if (names.empty()) return;
  notices.push_back(fmt::format("{} {} {}: {}", plural(names.size(), "column", "columns"), named(names),
                                plural(names.size(), is, are), consequence));
}

std::int64_t set_targets(EncodedTable& table, const RawColumn& column, const TargetFit& target) {
  std::int64_t unknown = 0;
  if (target.task == Task::classification)
    table.classes = class_codes(column, target, unknown);
  else
    table.targets = target_numbers(column, unknown);
  return unknown;
}

EncoderState fit_encoder(const Table& train, const std::string& target, const EncoderConfig& config) {
  EncoderState state = Fitter(train, config).run(train, target);
  state.missing = train.missing();
  return state;
}

}  // namespace ferrite::pfn::detail
