// Which columns matter to a model for rows that it has not learned from.
#pragma once

#include "ferrite/models/pfn/evaluation.hpp"

namespace ferrite::pfn::detail {

/// By the test parts of the folds, of which each is predicted with its columns permuted. The most important
/// column is first. `next` is called before each fold.
std::vector<ColumnImportance> fold_importance(const Table& table, const std::string& target,
                                              const std::function<FittedModel(const EncodedTable&)>& fit,
                                              const EvaluationConfig& config,
                                              const std::function<void()>& next);

}  // namespace ferrite::pfn::detail
