#include "models/pfn/fold_importance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/pfn/encoder_state.hpp"

namespace ferrite::pfn::detail {

namespace {

struct ColumnScore {
  std::string column;
  double score;  // of the feature that tells most
};

std::vector<ColumnScore> column_scores(const EncodedTable& table) {
  std::vector<ColumnScore> all;
  std::vector<float> cells(static_cast<std::size_t>(table.rows));
  for (std::size_t c = 0; c < table.features.size(); ++c) {
    const Feature& feature = table.features[c];
    for (std::size_t r = 0; r < cells.size(); ++r) cells[r] = table.row(static_cast<std::int64_t>(r))[c];
    const double score = table.task == Task::classification
                             ? class_score(cells, feature.is_category, table.classes, table.class_count())
                             : variance_score(cells, feature.is_category, table.targets);
    if (all.empty() || all.back().column != feature.column)
      all.push_back({feature.column, score});
    else
      all.back().score = std::max(all.back().score, score);
  }
  return all;
}

/// Features that came from one column lie side by side.
std::int64_t table_columns(const EncodedTable& table) {
  std::int64_t count = 0;
  for (std::size_t c = 0; c < table.features.size(); ++c)
    count += c == 0 || table.features[c].column != table.features[c - 1].column;
  return count;
}

/// What is predicted in each fold, with every column permuted in turn.
struct ImportanceSize {
  std::int64_t rows, columns;
};

/// Rows x columns is about four times the rows of the table at most; see EvaluationConfig::repeats.
ImportanceSize importance_size(std::int64_t table_rows, std::int64_t columns,
                               const EvaluationConfig& config) {
  constexpr std::int64_t fewest = 50;  // with less, a score says little
  const std::int64_t budget = 4 * table_rows, in_a_fold = (table_rows - 1) / config.folds + 1;
  const std::int64_t rows = std::min({config.importance_rows, in_a_fold, std::max(fewest, budget / columns)});
  return {rows, std::clamp<std::int64_t>(budget / std::max<std::int64_t>(1, rows), 1, columns)};
}

}  // namespace

FoldImportance fold_importance(const Table& table, const std::string& target, const EncodedTable& rows,
                               const std::function<FittedModel(const EncodedTable&)>& fit,
                               const EvaluationConfig& config,
                               const std::function<void(double share)>& progress) {
  const std::int64_t width = table_columns(rows);
  const ImportanceSize size = importance_size(rows.rows, width, config);
  FoldImportance out;
  std::vector<std::string> measured;  // none: all
  if (size.columns < width) {
    std::vector<ColumnScore> scores = column_scores(rows);
    std::stable_sort(scores.begin(), scores.end(),
                     [](const ColumnScore& a, const ColumnScore& b) { return a.score > b.score; });
    for (std::int64_t i = 0; i < size.columns; ++i)
      measured.push_back(scores[static_cast<std::size_t>(i)].column);
    out.notice =
        fmt::format("the importance of {} of the {} columns was measured: those that tell most by themselves",
                    size.columns, width);
  }
  std::vector<ColumnImportance>& all = out.columns;
  std::uint64_t fold = 0;
  const double calls = static_cast<double>(1 + size.columns * config.repeats);
  // The encoders of the folds are cross_validate's, so it runs once more, and its predictions are not needed.
  const FitPredict permuted = [&](const EncodedTable& train, const EncodedTable& test) {
    double asked = 0;
    const auto tell = [&] {
      progress((static_cast<double>(fold) + std::min(asked / calls, 1.0)) /
               static_cast<double>(config.folds));
    };
    tell();
    const FittedModel model = fit(train);
    const Predict predict = [&](const EncodedTable& dealt) {
      tell();
      ++asked;
      return model.predict(dealt);
    };
    const std::int64_t most = std::max({size.rows, std::int64_t{2}, test.class_count()});
    const EncodedTable part = test.take(context_rows(test, most, config.seed).rows);
    for (ColumnImportance& found :
         permutation_importance(part, predict, default_score, config.repeats, config.seed + fold, measured)) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const ColumnImportance& c) { return c.column == found.column; });
      ColumnImportance& column = known == all.end() ? all.emplace_back() : *known;
      column.column = found.column;
      column.losses.resize(fold * static_cast<std::uint64_t>(config.repeats));  // 0 where it was dropped
      column.losses.insert(column.losses.end(), found.losses.begin(), found.losses.end());
    }
    ++fold;
    return std::vector<double>(
        static_cast<std::size_t>(test.rows * std::max<std::int64_t>(1, test.class_count())));
  };
  const std::vector<FitPredict> models{permuted};
  cross_validate(table, target, models, config.folds, config.seed, config.encoder);
  for (ColumnImportance& column : all) {
    column.losses.resize(fold * static_cast<std::uint64_t>(config.repeats));
    const Spread spread = spread_of(column.losses);
    column.mean = spread.mean;
    column.deviation = spread.deviation;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ColumnImportance& a, const ColumnImportance& b) { return a.mean > b.mean; });
  return out;
}

}  // namespace ferrite::pfn::detail
