// ferrite pfn predict: the rows of a table from those of another, without training.
#include <fmt/format.h>

#include <algorithm>

#include "cli/backend_option.hpp"
#include "cli/pfn/class_names.hpp"
#include "cli/pfn/eval_network.hpp"
#include "cli/pfn/pfn.hpp"
#include "cli/pfn/table_options.hpp"
#include "cli/result_file.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/io/csv_scanner.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/models/pfn/classifier.hpp"
#include "ferrite/models/pfn/metrics.hpp"
#include "ferrite/models/pfn/regressor.hpp"

namespace ferrite::cli {
namespace {

using namespace ferrite::pfn;
using pfn::with_class_names;

struct PredictOptions : pfn::TableOptions {
  std::string train, test, out, fitted, save_fitted;
  PredictorConfig config;
  pfn::ContextOptions context;
  std::string precision = "auto";
  bool quiet = false;
};

void check(const PredictOptions& o) {
  if (o.fitted.empty() && (o.train.empty() || o.target.empty()))
    throw ValueError("[pfn predict] give --train and --target, or --fitted with what --save-fitted wrote");
}

/// A table for a CSV file, column by column.
class Columns {
 public:
  void add(const std::string& name, std::vector<std::string> fields) {
    names_.push_back(name);
    fields_.push_back(std::move(fields));
  }
  void add(const std::string& name, std::span<const double> numbers, std::size_t first = 0,
           std::size_t step = 1) {
    std::vector<std::string> fields;
    for (std::size_t i = first; i < numbers.size(); i += step)
      fields.push_back(fmt::format("{}", numbers[i]));
    add(name, std::move(fields));
  }
  std::string csv() const {
    std::string text;
    const auto line = [&](const auto& field_of) {
      for (std::size_t c = 0; c < names_.size(); ++c) {
        if (c > 0) text += ',';
        append_csv_field(text, field_of(c));
      }
      text += '\n';
    };
    line([&](std::size_t c) { return names_[c]; });
    for (std::size_t r = 0; r < fields_[0].size(); ++r) line([&](std::size_t c) { return fields_[c][r]; });
    return text;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> fields_;
};

std::string score_of(const EncodedTable& all, std::span<const double> predictions) {
  const std::vector<std::int64_t> judged = all.labelled_rows();
  if (judged.empty()) return "";
  const EncodedTable rows = all.take(judged);
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(1, rows.class_count()));
  std::vector<double> p;
  for (const std::int64_t r : judged) {
    const auto from = predictions.begin() + r * static_cast<std::ptrdiff_t>(width);
    p.insert(p.end(), from, from + static_cast<std::ptrdiff_t>(width));
  }
  const std::string of = fmt::format("on the {} rows whose target is known: ", judged.size());
  const auto varies = [](const auto& values) {
    return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
  };
  if (rows.task == Task::regression)
    return of + fmt::format("{}RMSE {:.6g}",
                            varies(rows.targets) ? fmt::format("R2 {:.4f}, ", r2(p, rows.targets)) : "",
                            rmse(p, rows.targets));
  const std::int64_t classes = rows.class_count();
  return of +
         fmt::format("accuracy {:.4f}, log loss {:.4f}{}", accuracy(p, rows.classes, classes),
                     log_loss(p, rows.classes, classes),
                     varies(rows.classes) ? fmt::format(", AUC {:.4f}", auc(p, rows.classes, classes)) : "");
}

/// What is told beside the predictions.
struct Outcome {
  std::string score, csv;
  std::vector<std::string> notices;
  std::int64_t rows = 0;
};

template <class Model>
Outcome run_model(const PredictOptions& o, const PredictorConfig& config, const pfn::Learned* learned) {
  Model model(config);
  TableConfig reading = o.table;
  if (!learned) {
    model = Model::load(o.fitted, config);
    const std::vector<std::string>& then = model.encoder().missing();
    reading.missing.insert(reading.missing.end(), then.begin(), then.end());
  }
  Table test = read_table(o.test, reading);  // before the fit, which takes longer
  const TableEncoder encoder = learned ? learned->encoder : model.encoder();
  if constexpr (std::is_same_v<Model, Classifier>)
    test = with_class_names(test, o.test, reading, encoder.target(), encoder.class_names());
  const EncodedTable rows = encoder.transform(test);
  if (learned) model.fit(learned->train, encoder);
  if (!o.save_fitted.empty()) model.save(o.save_fitted);
  Outcome outcome;
  if (learned) outcome.notices = learned->notices;
  for (const auto& more : {model.notices(), rows.notices})
    outcome.notices.insert(outcome.notices.end(), more.begin(), more.end());
  outcome.rows = rows.rows;
  Columns columns;
  if constexpr (std::is_same_v<Model, Classifier>) {
    const std::vector<double> p = model.predict_proba(rows);
    const std::vector<std::string>& classes = model.classes();
    std::vector<std::string> names;
    for (const std::int32_t c : most_likely(p, rows.class_count()))
      names.push_back(classes[static_cast<std::size_t>(c)]);
    columns.add("prediction", std::move(names));
    for (std::size_t c = 0; c < classes.size(); ++c) columns.add("p_" + classes[c], p, c, classes.size());
    outcome.score = score_of(rows, p);
  } else {
    const LabelDistributions y = model.predict(rows);
    const std::vector<double> mean = y.mean();
    columns.add("prediction", mean);
    columns.add("q05", y.quantile(0.05));
    columns.add("q50", y.median());
    columns.add("q95", y.quantile(0.95));
    outcome.score = score_of(rows, mean);
  }
  outcome.csv = columns.csv();
  return outcome;
}

int run_predict(PredictOptions& o) {
  check(o);
  ResultFile out(o.out);
  { const ResultFile writable(o.save_fitted); }  // it is opened again to be written
  o.config = o.context.config(o.config, "pfn predict");
  o.config.precision = ferrite::pfn::precision_from_string(o.precision);
  Outcome outcome;
  Task task = Task::classification;
  double seconds = 0;
  {
    ProgressLine bar(o.quiet ? nullptr : stderr);
    const PredictorConfig config = o.config.with_progress(std::ref(bar));
    if (o.fitted.empty()) {
      const pfn::Learned from = pfn::learned(o.train, o.table, o.target, o.encoder_config("pfn predict"));
      task = from.encoder.task();
      outcome = task == Task::classification ? run_model<Classifier>(o, config, &from)
                                             : run_model<Regressor>(o, config, &from);
    } else {
      task = fitted_task(o.fitted);
      outcome = task == Task::classification ? run_model<Classifier>(o, config, nullptr)
                                             : run_model<Regressor>(o, config, nullptr);
    }
    seconds = bar.seconds();
  }
  out.write([&] { return outcome.csv; });
  for (const std::string& notice : outcome.notices) fmt::print(stderr, "notice: {}\n", notice);
  if (o.quiet) return success;
  if (!outcome.score.empty()) fmt::print("{}\n", outcome.score);
  fmt::print("{} rows, {}, {:.1f} s: {}\n", outcome.rows, to_string(task), seconds, o.out);
  if (!o.save_fitted.empty()) fmt::print("fitted: {}\n", o.save_fitted);
  return success;
}

}  // namespace

void add_pfn_predict(CLI::App& pfn, Action& action) {
  auto o = std::make_shared<PredictOptions>();
  CLI::App* command = pfn.add_subcommand("predict", "Predict the rows of a table from those of another");
  std::vector<CLI::Option*> of_learning = pfn::add_table_options(*command, *o);
  const auto learning = [&](CLI::Option* option) { of_learning.push_back(option); };
  learning(command->add_option("--train", o->train,
                               "Rows with a target: .csv .tsv .npy .npz .safetensors .parquet"));
  command->add_option("--test", o->test, "Rows to predict, of the same columns in any order")->required();
  command
      ->add_option("--out", o->out,
                   "A .csv file, a row for each of --test: prediction and p_CLASS, or prediction (the mean), "
                   "q05, q50 and q95 (quantiles)")
      ->required();
  command->add_option(
      "--weights", o->config.weights,
      "The network's, of `ferrite pfn train`; default: what FERRITE_PFN_WEIGHTS names (a file, or a folder "
      "with classification.safetensors and regression.safetensors), else those that come with ferrite");
  add_backend_option(command, o->config.backend, "Where to predict");
  pfn::add_precision_option(*command, o->precision);
  learning(add_checked(*command, "--members", o->config.members,
                       "Views of the table whose predictions are averaged", between(1, 1000)));
  learning(add_checked(*command, "--seed", o->config.seed, "Of the members", whole_number));
  for (CLI::Option* const option : pfn::add_context_options(*command, o->context)) learning(option);
  add_checked(*command, "--query-rows", o->config.query_rows, "Rows that are predicted at a time; 0: a guess",
              whole_number);
  learning(command->add_option("--save-fitted", o->save_fitted, "Also write what was learned of --train"));
  CLI::Option* const fitted = command->add_option(
      "--fitted", o->fitted,
      "Predict by this file of --save-fitted, without --train; with the same weights. What --missing said "
      "then holds for --test too");
  for (CLI::Option* const option : of_learning) fitted->excludes(option);
  command->add_flag("--quiet", o->quiet, "Print nothing but notices");
  command->footer(
      "Nothing is trained: the network reads the rows of --train and predicts those of --test, in their\n"
      "order. If --test has the target, it is not used, but the score on it is printed. What was left\n"
      "out or sampled is said on standard error. Weights for classes and for numbers come with ferrite.\n"
      "Examples:\n"
      "  ferrite pfn predict --train a.csv --test b.csv --target y --out p.csv\n"
      "  ferrite pfn predict --train a.csv --test b.csv --target price --task regression --out p.csv\n"
      "  ferrite pfn predict --train a.csv --test b.csv --target y --out p.csv --save-fitted y.safetensors\n"
      "  ferrite pfn predict --fitted y.safetensors --test c.csv --out q.csv");
  command->callback([&action, o] { action = [o] { return run_predict(*o); }; });
}

}  // namespace ferrite::cli
