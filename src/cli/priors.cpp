// ferrite priors: synthetic datasets to files, their statistics, and descriptions of single ones.
#include <fmt/format.h>

#include <optional>

#include "cli/prior_options.hpp"
#include "cli/prior_statistics.hpp"
#include "cli/show_json.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/models/priors/describe.hpp"
#include "ferrite/models/priors/shards.hpp"
#include "ferrite/stacks.hpp"
#include "io/file_ending.hpp"

namespace ferrite::cli {

namespace {

using namespace priors;

struct DrawOptions : PriorOptions {
  std::string out, as = "json";
  std::int64_t shard_size = 1024;
  std::optional<std::int64_t> describe;
  bool json = false;
};

int describe_one(const DrawOptions& options, const Config& config) {
  const std::int64_t i = *options.describe;
  const std::string text = options.as == "dot"    ? describe_dot(config, options.seed, i)
                           : options.as == "html" ? picture_html(config, options.seed, i)
                                                  : describe_json(config, options.seed, i) + "\n";
  if (options.out.empty())
    std::fwrite(text.data(), 1, text.size(), stdout);
  else
    write_text(options.out, text);
  return success;
}

/// Names of files that are not written would become folders.
void check_name(const std::string& name) {
  const std::string ending = io_detail::ending_of(name);
  for (const char* other : {".npy", ".csv", ".tsv", ".parquet", ".json", ".jsonl", ".txt", ".zip"})
    if (ending == other)
      throw ValueError(
          fmt::format("[priors] --out {}: datasets are written as .npz or .safetensors, or into a folder: "
                      "give such a name",
                      name));
}

/// One file if the name says so, a folder of shards otherwise; without a name the datasets are only counted.
void make(AnyBackend& backend, const DrawOptions& options, ShardPlan plan, PriorStatistics& statistics,
          ProgressLine& bar) {
  const auto show = [&](std::int64_t done) {
    bar("datasets", static_cast<double>(done) / static_cast<double>(plan.datasets));
  };
  const std::string ending = io_detail::ending_of(options.out);
  plan.format = ending == ".npz" ? ShardFormat::npz : ShardFormat::safetensors;
  if (ending == ".npz" || ending == ".safetensors") {
    const AtomicFile reserved(options.out);  // a path that cannot be written should not cost the datasets
    const NamedTensors tensors =
        to_host(generate(backend, plan.config, plan.seed, plan.first, plan.datasets));
    statistics.add(tensors);
    write_batch(options.out, plan.format, plan, tensors);
  } else if (!options.out.empty()) {
    std::int64_t before = 0;
    write_shards(backend, options.out, plan, [&](const NamedTensors* tensors, std::int64_t done) {
      if (tensors)
        statistics.add(*tensors);
      else
        statistics.add_earlier(done - before);
      show(before = done);
    });
  } else {
    for (std::int64_t done = 0; done < plan.datasets;) {
      const std::int64_t count = std::min<std::int64_t>(plan.datasets - done, 64);
      statistics.add(to_host(generate(backend, plan.config, plan.seed, plan.first + done, count)));
      show(done += count);
    }
  }
}

int run_priors(const DrawOptions& options) {
  const Config config = options.prior();
  if (options.describe) return describe_one(options, config);
  check_name(options.out);
  const ShardPlan plan{config, options.seed, options.first, options.datasets, options.shard_size, {}};
  op::PriorDatasets{config, plan.seed, plan.first, plan.datasets}.infer({});
  PriorStatistics statistics;
  double seconds = 0;
  {
    ProgressLine bar;
    AnyBackend backend(options.backend);
    make(backend, options, plan, statistics, bar);
    seconds = bar.seconds();
  }
  if (options.json) {
    nlohmann::ordered_json json = statistics.json();
    json["seconds"] = seconds;
    show_json(json);
  } else {
    const double rate = static_cast<double>(statistics.made()) / seconds;
    fmt::print("{}{:<24}{:.2f} s{} on {}\n", statistics.table(), "time", seconds,
               statistics.made() > 0 ? fmt::format(", {:.0f} datasets/s", rate) : "", options.backend);
  }
  return success;
}

}  // namespace

void add_priors(CLI::App& app, Action& action) {
  auto options = std::make_shared<DrawOptions>();
  CLI::App* command =
      app.add_subcommand("priors", "Make synthetic tabular datasets from random causal models");
  options->add_to(*command);
  command->add_option(
      "--out", options->out,
      "A .npz or .safetensors file, or a folder of shards (a run that was cut short goes on)");
  command->add_option("--shard-size", options->shard_size, "Datasets per file of a folder")
      ->capture_default_str();
  command->add_option("--describe", options->describe,
                      "Only say what this dataset is made of; to --out, or printed");
  add_checked(*command, "--as", options->as, "How: json, dot (Graphviz) or html (a picture)",
              CLI::IsMember({"json", "dot", "html"}));
  command->add_flag("--json", options->json, "Print the statistics as JSON");
  command->footer(
      "Examples:\n"
      "  ferrite priors --datasets 1000\n"
      "  ferrite priors --family mlp_scm --rows 1024 --features 2:20 --datasets 100000 --out train-sets\n"
      "  ferrite priors --preset realistic --datasets 100000 --out train-sets\n"
      "  ferrite priors stats --preset realistic --csv my.csv --target y\n"
      "  ferrite priors --config prior.json --seed 7 --datasets 64 --out sets.npz\n"
      "  ferrite priors --family graph --describe 3 --as html --out dataset.html");
  command->require_subcommand(0, 1);
  act_alone(*command, [&action, options] { action = [options] { return run_priors(*options); }; });
  add_prior_stats(*command, action);
}

}  // namespace ferrite::cli
