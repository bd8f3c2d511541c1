// The result of `ferrite pfn eval` as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/pfn/eval.hpp"
#include "cli/pfn/eval_plots.hpp"

namespace ferrite::cli::pfn {

using namespace ferrite::pfn;

namespace {

using Json = nlohmann::ordered_json;

std::vector<std::int64_t> class_rows(const EncodedTable& rows) {
  std::vector<std::int64_t> counts(rows.class_names.size());
  for (const std::int32_t c : rows.classes) ++counts[static_cast<std::size_t>(c)];
  return counts;
}

/// Errors have the unit of the target, so they need digits rather than decimals: four of the mean.
std::string spread_text(const Metric& metric, const Spread& spread) {
  if (metric.name != "RMSE" && metric.name != "MAE")
    return fmt::format("{:.4f} +- {:.4f}", spread.mean, spread.deviation);
  const int power = spread.mean > 0 ? static_cast<int>(std::floor(std::log10(spread.mean))) : 0;
  if (power < -5 || power > 8) return fmt::format("{:.3e} +- {:.1e}", spread.mean, spread.deviation);
  const int decimals = std::max(3 - power, 0);
  return fmt::format("{:.{}f} +- {:.{}f}", spread.mean, decimals, spread.deviation, decimals);
}

std::string key_of(const Metric& metric) {
  std::string key;
  for (const char c : metric.name) key += c == ' ' ? '_' : static_cast<char>(std::tolower(c));
  return key;
}

Json class_json(const EvalReport& report, std::size_t model) {
  const EncodedTable& rows = report.evaluation.rows();
  const std::vector<double>& p = report.evaluation.validation.predictions[model];
  Json json{{"confusion", confusion(p, rows.classes, rows.class_count())}};
  const auto bins = reliability(p, rows.classes, rows.class_count());
  json["calibration_error"] = calibration_error(bins);
  for (const CalibrationBin& bin : bins)
    json["calibration"].push_back(
        {{"predicted", bin.predicted}, {"observed", bin.observed}, {"rows", bin.rows}});
  return json;
}

Json model_json(const EvalReport& report, std::size_t m) {
  const Evaluation& all = report.evaluation;
  const ModelResult& model = all.models[m];
  Json scores;
  for (std::size_t i = 0; i < all.metrics.size(); ++i) {
    if (model.scores[i].empty()) continue;
    const Spread spread = spread_of(model.scores[i]);
    scores[key_of(all.metrics[i])] = {
        {"mean", spread.mean}, {"deviation", spread.deviation}, {"folds", model.scores[i]}};
  }
  Json json{{"name", model.name}, {"scores", scores}, {"seconds", model.seconds}};
  if (report.is_classification()) json.update(class_json(report, m));
  if (!model.intervals.low.empty()) json["mean_interval"] = mean_width(model.intervals);
  return json;
}

}  // namespace

std::string table_facts(const EvalReport& report) {
  const TableSummary& s = report.summary;
  std::vector<std::string> kinds;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) kinds.push_back(fmt::format("{} of {}", count, what));
  };
  add(s.numbers, "numbers");
  add(s.texts, "texts");
  add(s.dates, "dates");
  return fmt::format("{} rows, {} columns ({}), {} missing cells{}", s.rows, s.columns(),
                     fmt::join(kinds, ", "), s.missing_cells == 0 ? "no" : std::to_string(s.missing_cells),
                     s.missing.empty() ? "" : fmt::format(" in {} columns", s.missing.size()));
}

std::string target_facts(const EvalReport& report) {
  const EncodedTable& rows = report.evaluation.rows();
  if (!report.is_classification()) {
    const auto [least, most] = std::minmax_element(rows.targets.begin(), rows.targets.end());
    return fmt::format("numbers from {:.6g} to {:.6g}", *least, *most);
  }
  constexpr std::size_t most_named = 10;
  const std::vector<std::int64_t> counts = class_rows(rows);
  std::vector<std::string> names;
  for (std::size_t c = 0; c < std::min(counts.size(), most_named); ++c)
    names.push_back(fmt::format("{} ({})", shown(rows.class_names[c]), counts[c]));
  if (counts.size() > most_named) names.push_back(fmt::format("{} more", counts.size() - most_named));
  return fmt::format("{} classes: {}", counts.size(), fmt::join(names, ", "));
}

std::string score_text(const EvalReport& report, std::size_t model, std::size_t metric) {
  const std::vector<double>& folds = report.evaluation.models[model].scores[metric];
  if (folds.empty()) return "";
  return spread_text(report.evaluation.metrics[metric], spread_of(folds));
}

bool is_best(const EvalReport& report, std::size_t model, std::size_t metric) {
  const std::vector<ModelResult>& models = report.evaluation.models;
  const auto scored = std::count_if(models.begin(), models.end(),
                                    [&](const ModelResult& m) { return !m.scores[metric].empty(); });
  const std::vector<std::size_t> best = report.evaluation.best(metric);
  return std::ssize(best) < scored && std::find(best.begin(), best.end(), model) != best.end();
}

std::string score_table(const EvalReport& report) {
  const Evaluation& all = report.evaluation;
  std::vector<std::vector<std::string>> lines{{"model"}};
  for (const Metric& metric : all.metrics) lines[0].push_back(metric.name);
  for (std::size_t m = 0; m < all.models.size(); ++m) {
    lines.push_back({all.models[m].name});
    for (std::size_t i = 0; i < all.metrics.size(); ++i)
      lines.back().push_back(score_text(report, m, i) + (is_best(report, m, i) ? " *" : ""));
  }
  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) row += fmt::format("{:<{}}", line[i], widths[i] + 3);
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const EvalReport& report) {
  const Evaluation& all = report.evaluation;
  const TableSummary& s = report.summary;
  Json json{{"file", report.file},
            {"target", report.target},
            {"task", to_string(all.rows().task)},
            {"rows", s.rows},
            {"columns", s.columns()},
            {"missing_cells", s.missing_cells},
            {"missing_targets", s.missing_targets}};
  for (const auto& [column, missing] : s.missing) json["missing"][column] = missing;
  const std::vector<std::int64_t> counts = class_rows(all.rows());
  for (std::size_t c = 0; c < counts.size(); ++c)
    json["classes"].push_back({{"name", all.rows().class_names[c]}, {"rows", counts[c]}});
  json["folds"] = all.validation.folds.size();
  json["seed"] = report.seed;
  for (std::size_t m = 0; m < all.models.size(); ++m) json["models"].push_back(model_json(report, m));
  json["best"] = all.models[all.best_model()].name;
  for (const ColumnImportance& column : all.importance)
    json["importance"].push_back(
        {{"column", column.column}, {"mean", column.mean}, {"deviation", column.deviation}});
  json["notices"] = report.notices;
  return json;
}

}  // namespace ferrite::cli::pfn
