#include "models/pfn/fold_importance.hpp"

#include <algorithm>

namespace ferrite::pfn::detail {

std::vector<ColumnImportance> fold_importance(const Table& table, const std::string& target,
                                              const std::function<FittedModel(const EncodedTable&)>& fit,
                                              const EvaluationConfig& config,
                                              const std::function<void()>& next) {
  std::vector<ColumnImportance> all;
  std::uint64_t fold = 0;
  // The encoders of the folds are cross_validate's, so it runs once more, and its predictions are not needed.
  const FitPredict permuted = [&](const EncodedTable& train, const EncodedTable& test) {
    next();
    const FittedModel model = fit(train);
    const ContextConfig sample{
        std::max(config.importance_rows, std::max<std::int64_t>(2, test.class_count())),
        ContextPolicy::sample};
    const EncodedTable rows = test.take(contexts_of(test, sample, config.seed).rows[0]);
    for (ColumnImportance& found :
         permutation_importance(rows, model.predict, default_score, config.repeats, config.seed + fold)) {
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
  return all;
}

}  // namespace ferrite::pfn::detail
