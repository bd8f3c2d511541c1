// Which columns matter to a model for rows that it has not learned from.
#pragma once

#include "ferrite/models/pfn/evaluation.hpp"

namespace ferrite::pfn::detail {

struct FoldImportance {
  std::vector<ColumnImportance> columns;  // the most important first
  std::string notice;                     // about columns that were not measured; empty if there are none
};
/// By the test parts of the folds. `rows` is the whole table, encoded: of too many columns it says which to
/// measure. Tells `progress` which share is done before each prediction.
FoldImportance fold_importance(const Table& table, const std::string& target, const EncodedTable& rows,
                               const std::function<FittedModel(const EncodedTable&)>& fit,
                               const EvaluationConfig& config,
                               const std::function<void(double share)>& progress);

}  // namespace ferrite::pfn::detail
