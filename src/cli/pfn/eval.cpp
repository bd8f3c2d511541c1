// ferrite pfn eval: how well the network and simple models predict a table that somebody has.
#include "cli/pfn/eval.hpp"

#include <fmt/format.h>

#include "cli/pfn/class_names.hpp"
#include "cli/pfn/eval_network.hpp"
#include "cli/pfn/eval_plots.hpp"
#include "cli/pfn/pfn.hpp"
#include "cli/pfn/table_options.hpp"
#include "cli/result_file.hpp"
#include "ferrite/io/progress.hpp"

namespace ferrite::cli {
namespace {

using namespace ferrite::pfn;
using pfn::EvalReport;

struct EvalOptions : pfn::TableOptions {
  std::string file, page, json;
  pfn::NetworkOptions network;
  EvaluationConfig config;
  std::int64_t repeats = 1;
  bool quiet = false;
};

int run_eval(EvalOptions o) {
  const bool is_written = !o.page.empty() || !o.json.empty();
  ResultFile json(o.json), page(o.page);
  o.config.encoder = o.encoder_config("pfn eval");
  o.config.repeats = is_written ? o.repeats : 0;  // the terminal does not show importance
  const auto [table, encoder, reading_notices] = pfn::learned(o.file, o.table, o.target, o.config.encoder);
  const Task task = encoder.task();
  if (task == Task::classification) o.config.encoder.task = task;  // names of classes may be texts now
  EvalReport report{std::filesystem::path(o.file).filename().string(),
                    o.target,
                    summary_of(table, o.target),
                    {},
                    o.config.seed,
                    {}};
  std::vector<Candidate> models = baseline_candidates(task);
  o.network.seed = o.config.seed;
  std::vector<std::string> notices;
  if (auto network = pfn::network_of(o.network, task, notices))
    models.insert(models.begin(), std::move(*network));
  {
    ProgressLine bar(o.quiet ? nullptr : stderr);
    o.config.progress = [&](std::string_view what, double share) { bar(what, share); };
    report.evaluation = evaluate(table, o.target, models, o.config);
  }
  for (const auto& some : {reading_notices, report.evaluation.notices, notices})
    report.notices.insert(report.notices.end(), some.begin(), some.end());
  if (!o.quiet)
    fmt::print("{}: {}\ntarget '{}': {}\n{} folds, seed {}; the mean over folds +- their deviation\n\n",
               report.file, pfn::table_facts(report), pfn::shown(report.target), pfn::target_facts(report),
               report.evaluation.validation.folds.size(), report.seed);
  fmt::print("{}", pfn::score_table(report));
  if (!o.quiet) {
    fmt::print("\n* best of its column\n");
    for (const std::string& notice : report.notices) fmt::print("notice: {}\n", notice);
  }
  json.write([&] {
    return pfn::to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  });
  page.write([&] { return pfn::eval_page(report); });
  return success;
}

}  // namespace

void add_pfn_eval(CLI::App& app, Action& action) {
  auto o = std::make_shared<EvalOptions>();
  CLI::App* command =
      app.add_subcommand("eval", "Cross-validate the network on a table, beside simple models");
  command->add_option("data", o->file, "Table: .csv .tsv .npy .npz .safetensors .parquet")->required();
  pfn::add_table_options(*command, *o)[0]->required();
  add_checked(*command, "--folds", o->config.folds,
              "Parts, each predicted by what was learned from the others", whole_number);
  add_checked(*command, "--seed", o->config.seed, "Of the folds, the network's members and the permutations",
              whole_number);
  pfn::add_network_options(*command, o->network);
  command->add_option("--page", o->page, "HTML page to write: curves, calibration, columns that matter");
  command->add_option("--json", o->json, "File to write with all figures");
  add_checked(*command, "--repeats", o->repeats,
              "Permutations of each column in every fold, for its importance on the page and in the "
              "JSON; each takes about as long as the network's scores; 0: none",
              whole_number);
  command->add_flag("--quiet", o->quiet, "Print only the table of scores");
  command->footer(
      "Every model learns and predicts on the same folds, and everything that is fitted is fitted on the\n"
      "train part of a fold: encoders and scales too. Weights for classes and numbers come with ferrite.\n"
      "For --page and --json the importance of columns is measured too, by one member of the network's\n"
      "ensemble; of a wide table, of the columns that tell most about the target by themselves.\n"
      "Examples:\n"
      "  ferrite pfn eval churn.csv --target left\n"
      "  ferrite pfn eval churn.csv --target left --page report.html\n"
      "  ferrite pfn eval houses.csv --target price --task regression --folds 10 --json report.json");
  command->callback([&action, o] { action = [o] { return run_eval(*o); }; });
}

}  // namespace ferrite::cli
