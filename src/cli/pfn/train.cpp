// ferrite pfn train: a tabular foundation model from synthetic tables.
#include "cli/pfn/train.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/backend_option.hpp"
#include "cli/csv_options.hpp"
#include "cli/pfn/pfn.hpp"
#include "cli/result_file.hpp"
#include "cli/training_run.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cli {
namespace {

using namespace pfn;

/// A long run should not end with a file that cannot be written, or in the place of a checkpoint.
void check_export(const std::string& path, const std::string& out) {
  namespace fs = std::filesystem;
  if (path.empty()) return;
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_directory(folder))
    throw ValueError(
        fmt::format("[pfn train] --export {}: there is no folder {}: make it first", path, folder.string()));
  if (fs::is_directory(path))
    throw ValueError(fmt::format("[pfn train] --export {}: is a folder: name a file in it", path));
  const std::string name = fs::path(path).filename().string();
  std::error_code error;
  if (fs::equivalent(folder, out, error) && (name.starts_with("step-") || name.starts_with("best")))
    throw ValueError(
        fmt::format("[pfn train] --export {}: checkpoints of --out have such names: choose another", path));
  const ResultFile can_be_written(path);
}

/// Fills in what follows from other options. Throws ValueError for what cannot be.
void complete(TrainOptions& o) {
  o.model.check();
  o.course =
      ferrite::pfn::CourseConfig::standard(o.steps, o.model.registers).with_cells(o.cells).with_seed(o.seed);
  o.course.prior.task = o.model.task;
  o.course.check();
  if (o.evaluate_minutes > 0 && o.tables.empty())
    throw ValueError("[pfn train] --evaluate-minutes: there are no tables: give --tables FILE:TARGET too");
  if (o.lr == 0) o.lr = o.optimizer == "muon" ? 2e-3 : 1e-3;
  if (o.warmup < 0) o.warmup = std::min<std::int64_t>(500, o.steps / 20);
  if (o.shard_optimizer && o.optimizer == "muon")
    throw ValueError(
        "[pfn train] --shard-optimizer with --optimizer muon: Muon needs whole matrices; give --optimizer "
        "adamw, or leave out --shard-optimizer");
  check_folder_of_run("pfn train", o.out, o.resume);
  check_export(o.export_to, o.out);
}

int run_train(TrainOptions o) {
  complete(o);
  TrainingRanks ranks;
  o.quiet = o.quiet || !ranks.is_first();
  AnyBackend backend(ranks.backend(o.backend));
  ranks.connect(backend.device());
  o.precision = precision_on(backend, o.precision);
  return o.precision == "bf16" ? train_bf16(backend, ranks, o) : train_f32(backend, ranks, o);
}

}  // namespace

void add_pfn_train(CLI::App& pfn, Action& action) {
  auto o = std::make_shared<TrainOptions>();
  auto task = std::make_shared<std::string>("classification");
  CLI::App* command = pfn.add_subcommand("train", "Train a network on synthetic tables");
  const auto count = [&](const char* name, std::int64_t& value, const char* help) {
    return add_checked(*command, name, value, help, whole_number);
  };
  command->add_option("--out", o->out, "Folder of the run: checkpoints, metrics.jsonl, metrics.html")
      ->required();
  count("--steps", o->steps, "Updates of the whole run")->check(positive_number)->required();
  add_checked(*command, "--task", *task,
              "What the network predicts: classes, or numbers with their quantiles",
              CLI::IsMember({"classification", "regression"}));
  count("--layers", o->model.layers, "Blocks")->check(positive_number);
  count("--dim", o->model.dim, "Features of a cell; a multiple of 32")->check(positive_number);
  count("--hidden", o->model.hidden, "Features inside the feed-forward")->check(positive_number);
  count("--registers", o->model.registers, "Learned rows before those of a table");
  count("--cells", o->cells, "Cells of a batch, on each rank, about")->check(positive_number);
  add_checked(*command, "--optimizer", o->optimizer, "muon: for matrices, with AdamW for the rest; or adamw",
              CLI::IsMember({"muon", "adamw"}));
  command
      ->add_option(
          "--lr", o->lr,
          "Largest learning rate, which falls along a cosine; default: 2e-3 for muon, 1e-3 for adamw")
      ->check(positive_number);
  command->add_option("--warmup", o->warmup, "Steps until it is reached; default: steps / 20, at most 500")
      ->check(whole_number);
  add_checked(*command, "--weight-decay", o->weight_decay, "Of matrices", nonnegative_number);
  add_checked(*command, "--clip", o->clip, "Largest norm of the gradients", positive_number);
  command
      ->add_option("--average", o->average,
                   "Share of itself that an average of the weights keeps in a step; 0: no average")
      ->capture_default_str();
  add_checked(*command, "--seed", o->seed, "Of the weights and of the tables", whole_number);
  count("--record", o->recorded,
        "Sizes of tables whose steps are recorded on a GPU; they share memory. 0: none, for less memory");
  count("--report-every", o->report_every, "Steps between reports")->check(positive_number);
  count("--evaluate-every", o->evaluate_every, "Steps between evaluations on tables kept apart");
  count("--evaluate-batches", o->evaluate_batches, "Batches of an evaluation, on each rank")
      ->check(positive_number);
  count("--checkpoint-every", o->checkpoint_every, "Steps between checkpoints; 0: only at the end");
  command->add_option("--tables", o->tables,
                      "Real tables, as iris.csv:species, that the network of every checkpoint predicts in "
                      "cross-validation; at most 1,000 rows of each, one member");
  add_reading_options(*command, o->reading);
  add_checked(*command, "--evaluate-minutes", o->evaluate_minutes,
              "Minutes of training after which --tables are predicted again, at the next report; "
              "0: only at checkpoints",
              nonnegative_number);
  command->add_option(
      "--export", o->export_to,
      "At the end, the averaged weights go to this file, as `ferrite pfn export` writes them");
  command->add_flag("--resume", o->resume, "Go on from the newest checkpoint in --out, if there is one");
  add_backend_option(command, o->backend, "Where to train");
  command->add_flag("--shard-optimizer", o->shard_optimizer,
                    "With several ranks and adamw: each keeps a share of its state (ZeRO-1); same weights");
  add_checked(*command, "--precision", o->precision, "Of products: bf16 or f32; auto: bf16 on a GPU",
              CLI::IsMember({"auto", "bf16", "f32"}));
  command->add_flag("--quiet", o->quiet, "Print nothing");
  command->footer(
      "The tables are drawn from ferrite's priors, on the device: no data is needed. Ctrl-C saves a\n"
      "checkpoint and ends the run, with exit code 130; --resume goes on, as if it had not been\n"
      "interrupted. It needs the same --steps, from which the sizes of the tables follow.\n"
      "OUT/metrics.html shows how the run goes.\n"
      "Examples:\n"
      "  ferrite pfn train --steps 20000 --out run --export w.safetensors\n"
      "  ferrite pfn train --steps 20000 --out run --resume --tables iris.csv:species wine.csv:class\n"
      "  ferrite pfn train --steps 200 --layers 2 --dim 64 --hidden 128 --cells 5000 --out small\n"
      "  mpirun -n 4 ferrite pfn train --steps 20000 --out run");
  command->callback([&action, o, task] {
    action = [o, task] {
      o->model.task = *task == "regression" ? priors::Task::regression : priors::Task::classification;
      return run_train(*o);
    };
  });
}

}  // namespace ferrite::cli
