// What `ferrite pfn eval` has found out, and how it is shown.
#pragma once

#include <nlohmann/json.hpp>

#include "ferrite/models/pfn/evaluation.hpp"

namespace ferrite::cli::pfn {

struct EvalReport {
  std::string file, target;
  ferrite::pfn::TableSummary summary;
  ferrite::pfn::Evaluation evaluation;
  std::uint64_t seed = 0;
  /// Of the evaluation, and of what was left out.
  std::vector<std::string> notices;

  bool is_classification() const { return evaluation.rows().task == ferrite::pfn::Task::classification; }
};

/// As "569 rows, 10 columns (10 of numbers), ...", and as "2 classes: 0 (212), 1 (357)".
std::string table_facts(const EvalReport& report);
std::string target_facts(const EvalReport& report);
/// "0.9860 +- 0.0051", or empty if the model has none.
std::string score_text(const EvalReport& report, std::size_t model, std::size_t metric);
/// Whether it is the best of its column; if all are equal, none is.
bool is_best(const EvalReport& report, std::size_t model, std::size_t metric);

/// Lines for the terminal: a model each, the best of each column marked by a star.
std::string score_table(const EvalReport& report);
nlohmann::ordered_json to_json(const EvalReport& report);
/// HTML that needs no network.
std::string eval_page(const EvalReport& report);

}  // namespace ferrite::cli::pfn
