// ferrite bench: times ops and training steps on any backends, beside other libraries, and compares runs.
#include <fmt/format.h>

#include <algorithm>

#include "backend_cpu/linalg/lapack.hpp"
#include "cli/bench/compare.hpp"
#include "cli/bench/page.hpp"
#include "cli/bench/peers.hpp"
#include "cli/bench/run.hpp"
#include "cli/bench/summary.hpp"
#include "cli/command.hpp"
#include "cli/result_file.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::cli {

namespace {

using namespace bench;

struct BenchOptions : Plan {
  std::string out, html;
  bool list = false, quiet = false, verbose = false;
};

int list_rows(const Selection& selection) {
  fmt::print("{:<34}{:>12}{:>12}\n", "row", "GFLOP", "MB");
  for (const Row& row : select_rows(selection))
    fmt::print("{:<34}{:>12.4g}{:>12.4g}\n", row.name(), row.cost.flops / 1e9, row.cost.bytes / 1e6);
  return success;
}

/// What is here of the plain loops, the CPU with its own products and with those of OpenBLAS, and a GPU.
std::vector<std::string> default_backends() {
  std::vector<std::string> names{"reference", "cpu"};
  if (cpu::has_lapack()) names.push_back("cpu-openblas");
  if (cuda_device_count() > 0) names.push_back("cuda");
  return names;
}

int run_bench(const BenchOptions& options) {
  if (options.list) return list_rows(options.selection);
  Plan plan = options;
  plan.voice = options.quiet ? Voice::quiet : options.verbose ? Voice::verbose : Voice::normal;
  if (plan.backends.empty()) plan.backends = default_backends();
  if (std::find(plan.peers.begin(), plan.peers.end(), "all") != plan.peers.end()) plan.peers = peer_names();
  ResultFile json(options.out), html(options.html);
  const Report report = run(plan);
  json.write([&] { return to_json(report).dump(2) + "\n"; });
  html.write([&] { return page(report); });
  if (!options.quiet) fmt::print("{}", summary(report));
  return report.is_any_wrong() ? difference : success;
}

void add_selection(CLI::App* command, BenchOptions& options) {
  const auto list = [&](const char* name, std::vector<std::string>& value, const std::string& help) {
    return as_list(command->add_option(name, value, help));
  };
  list("--ops", options.selection.ops, "Only these ops, as add,matmul");
  list("--sizes", options.selection.sizes,
       "Only these sizes, as 1K,10M,4096; example: every op on a small input, which shows what a call costs");
  list("--dtypes", options.selection.dtypes, "f32, f64, f16, bf16")->capture_default_str();
  command->add_option("--filter", options.selection.filter,
                      "Only rows whose name has this regular expression");
  std::string names;
  for (const auto& [name, meaning] : AnyBackend::names()) names += (names.empty() ? "" : ", ") + name;
  list(
      "--backends", options.backends,
      fmt::format("Of {}, and cuda:N for another GPU; by default reference, cpu, cpu-openblas where OpenBLAS "
                  "is installed, and cuda where there is a GPU",
                  names));
  list("--peers", options.peers, "Other libraries beside them: eigen, numpy, torch, torch-cuda, or all");
  command->add_option("--python", options.python, "The Python that has NumPy and PyTorch")
      ->capture_default_str();
}

void add_timing(CLI::App* command, BenchOptions& options) {
  add_checked(*command, "--warmup", options.timing.warmup, "Calls before the first measured one",
              whole_number);
  add_checked(*command, "--iterations", options.timing.iterations, "Measurements of a row, at most",
              between(1, 1'000'000));
  add_checked(*command, "--max-seconds", options.timing.max_seconds, "Time for the measurements of a row",
              positive_number);
  command
      ->add_option("--max-error", options.max_error,
                   "Largest relative error against f64; by default what each op allows itself")
      ->check(nonnegative_number);
  command->add_option("--threads", options.threads, "Threads of the CPU; by default all cores")
      ->check(between(1, 256));
  command->add_flag(
      "--no-limits", [&options](std::int64_t) { options.has_limits = false; },
      "Plain loops (reference) run the rows of more than 2.2 GFLOP or 130 MB too");
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "Time ops and training steps on any backends, beside other libraries, and compare runs");
  add_selection(command, *options);
  add_timing(command, *options);
  command->add_flag("--list", options->list, "Print the rows and what each computes and moves, and stop");
  command->add_option("--out", options->out, "Write the figures to this JSON file")->take_last();
  command->add_option("--html", options->html, "Write a page with plots to this file")->take_last();
  CLI::Option* quiet = command->add_flag("-q,--quiet", options->quiet, "No progress and no table");
  command->add_flag("-v,--verbose", options->verbose, "A line for every measurement")->excludes(quiet);
  command->footer(
      "Examples:\n"
      "  ferrite bench --html bench.html --out bench.json\n"
      "  ferrite bench --ops add,matmul --backends cpu --peers numpy,torch\n"
      "  ferrite bench --filter 'matmul/.*/(512|1024)' --dtypes f32,f64 --threads 1\n"
      "  ferrite bench --sizes example --backends cpu\n"
      "  ferrite bench compare old.json new.json --fail-below 0.95\n"
      "  ferrite bench page bench.json --html bench.html\n"
      "The exit code is 1 if a row fails or its error is too large, and for compare if a row has become "
      "slower.");
  command->require_subcommand(0, 1);
  act_alone(*command, [&action, options] { action = [options] { return run_bench(*options); }; });
  add_bench_compare(*command, action);
  add_bench_page(*command, action);
}

}  // namespace ferrite::cli
