// The page of `ferrite pfn eval`: scores, plots of each model, columns that matter, the table itself.
#include <fmt/format.h>

#include <algorithm>

#include "cli/pfn/eval.hpp"
#include "cli/pfn/eval_plots.hpp"
#include "io/page_style.hpp"
#include "io/svg.hpp"

namespace ferrite::cli::pfn {

using namespace ferrite::pfn;

namespace {

using svg::escaped;

constexpr std::size_t most_class_curves = 5, most_confused = 20, most_columns = 20;

std::string section(const std::string& title, const std::string& about, const std::string& content) {
  return fmt::format("<h2>{}</h2>\n<p>{}</p>\n{}\n", escaped(title), escaped(about), content);
}
std::string in_grid(const std::string& content) { return R"(<div class="grid">)" + content + "</div>"; }

std::string scores(const EvalReport& report) {
  const Evaluation& all = report.evaluation;
  std::string html = "<tr><th>model</th>";
  for (const Metric& metric : all.metrics) html += "<th>" + escaped(metric.name) + "</th>";
  html += "<th>seconds</th></tr>";
  for (std::size_t m = 0; m < all.models.size(); ++m) {
    html += fmt::format(R"(<tr><td class="c{}">{}</td>)", m % 8, escaped(all.models[m].name));
    for (std::size_t i = 0; i < all.metrics.size(); ++i) {
      const std::string text = escaped(score_text(report, m, i));
      html += is_best(report, m, i) ? "<td><b>" + text + " *</b></td>" : "<td>" + text + "</td>";
    }
    html += fmt::format("<td>{:.2f}</td></tr>", all.models[m].seconds);
  }
  return section("Scores",
                 fmt::format("Of rows that a model had not learned from: the mean over {} folds, and the "
                             "deviation between them. A star marks the best of a column. Models whose "
                             "difference is within the deviation may be equally good.",
                             all.validation.folds.size()),
                 R"(<div class="scroll"><table>)" + html + "</table></div>");
}

/// Every class against the rest, if they are few, beside their mean.
std::string roc_of(const EvalReport& report, std::size_t m) {
  const EncodedTable& rows = report.evaluation.rows();
  const std::vector<double>& p = report.evaluation.validation.predictions[m];
  std::vector<Curve> curves{
      {rows.class_count() == 2 ? "class " + shown(rows.class_names[1]) : "mean of all classes",
       average_roc(p, rows.classes, rows.class_count()), m, false}};
  if (rows.class_count() > 2 && rows.class_names.size() <= most_class_curves)
    for (std::size_t c = 0; c < rows.class_names.size(); ++c) {
      const auto which = static_cast<std::int32_t>(c);
      Curve curve{"class " + shown(rows.class_names[c]), {}, c + report.evaluation.models.size(), true};
      for (const RocPoint& point :
           roc(column_of(p, rows.class_count(), which), is_class(rows.classes, which)))
        curve.points.push_back({point.false_rate, point.true_rate});
      curves.push_back(std::move(curve));
    }
  return roc_plot("ROC, and the area below", curves);
}

std::string class_plots(const EvalReport& report, std::size_t m) {
  const EncodedTable& rows = report.evaluation.rows();
  const std::vector<double>& p = report.evaluation.validation.predictions[m];
  const bool two = rows.class_count() == 2;
  const auto bins = reliability(p, rows.classes, rows.class_count());
  std::string html =
      roc_of(report, m) +
      calibration_plot(fmt::format("Calibration, error {:.3f}", calibration_error(bins)), bins, m,
                       two ? "predicted probability of " + shown(rows.class_names[1])
                           : "probability of the most likely class",
                       two ? "share of " + shown(rows.class_names[1]) : "share that is right");
  if (rows.class_names.size() <= most_confused)
    html += "<div>" + confusion_table(rows.class_names, confusion(p, rows.classes, rows.class_count())) +
            "</div>";
  return in_grid(html);
}

std::string number_plots(const EvalReport& report, std::size_t m) {
  const std::vector<double>& truth = report.evaluation.rows().targets;
  const std::vector<double>& predicted = report.evaluation.validation.predictions[m];
  std::vector<double> residuals;
  for (std::size_t r = 0; r < truth.size(); ++r) residuals.push_back(truth[r] - predicted[r]);
  return in_grid(
      scatter_plot("True, over predicted", predicted, truth, m, "predicted", Guide::diagonal) +
      scatter_plot("True minus predicted", predicted, residuals, m, "predicted", Guide::zero) +
      histogram_plot("Rows by true minus predicted", histogram(residuals, 24), m, "true minus predicted"));
}

std::string models(const EvalReport& report) {
  const Evaluation& all = report.evaluation;
  std::string html;
  if (report.is_classification()) {
    std::vector<Curve> curves;
    for (std::size_t m = 0; m < all.models.size(); ++m)
      curves.push_back(
          {all.models[m].name,
           average_roc(all.validation.predictions[m], all.rows().classes, all.rows().class_count()), m,
           false});
    html +=
        section("All models",
                "The rows of all folds in one curve, whose area differs a little from the mean over folds.",
                in_grid(roc_plot("ROC, and the area below", curves)));
  }
  for (std::size_t m = 0; m < all.models.size(); ++m)
    html += section(all.models[m].name,
                    report.is_classification()
                        ? "Each class against the rest; predicted probabilities against what happened, with "
                          "the number of rows; and which class was taken for which."
                        : "Each row as it was predicted by a model that had not seen it.",
                    report.is_classification() ? class_plots(report, m) : number_plots(report, m));
  return html;
}

std::string importance(const EvalReport& report) {
  const Evaluation& all = report.evaluation;
  if (all.importance.empty()) return "";
  const std::size_t best = all.best_model();
  const std::vector<ColumnImportance> first(
      all.importance.begin(),
      all.importance.begin() + static_cast<std::ptrdiff_t>(std::min(all.importance.size(), most_columns)));
  return section(
      "Columns that matter",
      fmt::format("How much {} {} loses on rows it had not learned from if a column's cells are "
                  "dealt to other rows; the line is the deviation over folds and repetitions. {} of "
                  "the {} columns that were measured. Columns that say the same share what they matter. "
                  "Of the network one member says it.",
                  report.is_classification() ? "AUC" : "R2", all.models[best].name, first.size(),
                  all.importance.size()),
      importance_plot(first, best));
}

std::string data(const EvalReport& report) {
  std::string rows;
  const TableSummary& s = report.summary;
  for (const auto& [column, missing] : s.missing)
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.1f} %</td></tr>", escaped(shown(column)), missing,
                        100 * static_cast<double>(missing) / static_cast<double>(s.rows));
  return section("The table", table_facts(report) + ". Target: " + target_facts(report) + ".",
                 rows.empty()
                     ? ""
                     : "<details><summary>Missing cells</summary><table><tr><th>column</th><th>missing"
                       "</th><th></th></tr>" +
                           rows + "</table></details>");
}

std::string notices(const EvalReport& report) {
  std::string html;
  for (const std::string& notice : report.notices) html += "<li>" + escaped(notice) + "</li>";
  return html.empty() ? "" : "<h2>Notices</h2>\n<ul>" + html + "</ul>\n";
}

}  // namespace

std::string eval_page(const EvalReport& report) {
  const std::string title = fmt::format("{} of {}", shown(report.target), report.file);
  const std::string facts =
      fmt::format("{} models, each evaluated on the same {} folds (seed {}).",
                  report.evaluation.models.size(), report.evaluation.validation.folds.size(), report.seed);
  return svg::page(title, facts,
                   scores(report) + models(report) + importance(report) + data(report) + notices(report));
}

}  // namespace ferrite::cli::pfn
