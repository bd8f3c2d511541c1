// ferrite irsynth: pairs of kernels in Python and their CUDA or C++, to files; stats and validate of such.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/models/irsynth/dataset.hpp"

namespace ferrite::cli {

namespace {

using namespace irsynth;

struct IrsynthOptions {
  Plan plan;
  std::string out, levels = "0:7", folder;
  int jobs = 0;
  bool compile = false, quiet = false;
};

/// "3" or "2:5".
void parse_levels(const std::string& text, Config& config) {
  const bool one = text.size() == 1, two = text.size() == 3 && text[1] == ':';
  const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  if (!(one || two) || !digit(0) || !digit(text.size() - 1))
    throw ValueError(fmt::format("[irsynth] --levels {}: a level such as 3, or two such as 2:5", text));
  config.lowest_level = text.front() - '0';
  config.highest_level = text.back() - '0';
}

std::string share(const Progress& p) {
  const double rate = static_cast<double>(p.done) / std::max(p.seconds, 1e-3);
  return p.seconds > 0 ? fmt::format("pairs {:.0f}/s", rate) : "records";
}

int generate(IrsynthOptions o) {
  parse_levels(o.levels, o.plan.config);
  if (o.jobs > 0) set_num_threads(o.jobs);
  double seconds = 0;
  DatasetResult result;
  {
    ProgressLine bar(o.quiet ? nullptr : stderr);
    result = write_dataset(o.out, o.plan, [&](const Progress& p) {
      bar(share(p), static_cast<double>(p.done) / static_cast<double>(p.pairs));
    });
    seconds = bar.seconds();
  }
  if (o.quiet) return success;
  fmt::print("{} pairs ({} of an earlier run) of {} structures in {:.1f} s, {:.0f} pairs/s: {}\n",
             result.pairs, result.kept, result.structures, seconds,
             static_cast<double>(result.pairs - result.kept) / std::max(seconds, 1e-3), o.out);
  if (result.failures > 0)
    fmt::print("{} of {} candidates could not be verified and were replaced: see {}/failures.jsonl\n",
               result.failures, result.candidates, o.out);
  return success;
}

int validate(const IrsynthOptions& o) {
  if (o.jobs > 0) set_num_threads(o.jobs);
  Validation result;
  {
    ProgressLine bar(o.quiet ? nullptr : stderr);
    result = validate_dataset(o.folder, o.compile, [&](const Progress& p) {
      bar("records", static_cast<double>(p.done) / static_cast<double>(p.pairs));
    });
  }
  for (const std::string& p : result.problems) fmt::print("{}\n", p);
  fmt::print("{} records, {} problems{}\n", result.records, result.problems.size(),
             o.compile ? fmt::format(", {} compiled", result.compiled) : "");
  return result.problems.empty() ? success : difference;
}

template <class E>
void choice(CLI::App* command, const std::string& flags, E& value, std::vector<E> all,
            const std::string& help) {
  std::map<std::string, E> names;
  for (const E e : all) names.emplace(to_string(e), e);
  command
      ->add_option_function<std::string>(
          flags, [&value, names](const std::string& key) { value = names.at(key); }, help)
      ->check(CLI::IsMember(names))
      ->default_str(std::string(to_string(value)));
}

}  // namespace

void add_irsynth(CLI::App& app, Action& action) {
  auto options = std::make_shared<IrsynthOptions>();
  IrsynthOptions& o = *options;
  Config& c = o.plan.config;
  CLI::App* command = app.add_subcommand(
      "irsynth", "Make verified pairs of kernels: Python and the CUDA or C++ that means the same");
  const CLI::Validator most = whole_between(1, 1'000'000'000'000);
  std::string names;
  for (const Category& category : categories())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", category.name);
  add_checked(*command, "-n,--pairs", o.plan.pairs, "How many", most);
  command->add_option("-o,--output", o.out, "Folder; a run that was cut short goes on");
  as_list(
      command->add_option("-c,--categories", c.categories, "Only these, with spaces or commas: " + names));
  choice(command, "-d,--device", c.device, {Device::cuda, Device::cpu},
         "What the target text is for: cuda or cpu");
  add_checked(*command, "-s,--seed", o.plan.seed, "Another seed, other kernels", whole_number);
  choice(command, "--style", c.style, {Style::standalone, Style::warp},
         "standalone: needs no headers; warp: as NVIDIA Warp prints it");
  command->add_flag("--backward", c.backward, "The gradient's kernel too (level 7 always has it)");
  command->add_flag("--ptx", c.ptx, "PTX too, by NVRTC");
  command->add_flag("--values", c.values, "Inputs and outputs as numbers");
  command
      ->add_option("--levels", o.levels,
                   "How much kernels use: 0 (one expression) to 7 (all, and a gradient); 3, or 2:5")
      ->capture_default_str();
  add_checked(*command, "--per-structure", c.most_per_structure,
              "Most pairs that differ only in names and numbers", whole_between(1, 1'000'000'000));
  command->add_option("-j,--jobs", o.jobs, "Threads; the result does not depend on it")->check(whole_number);
  choice(command, "--format", o.plan.format, {Format::json, Format::jsonl},
         "A file for each pair, or lines in shards");
  add_checked(*command, "--shard-size", o.plan.shard_size, "Pairs of a jsonl shard", most);
  choice(command, "--verify", c.verify, {Verify::none, Verify::cpu, Verify::compile, Verify::gpu},
         "none; cpu: parser, interpreter, CPU, gradients; compile: NVRTC too; gpu: a GPU's outputs too");
  add_checked(*command, "--gpu", c.gpu, "Index of the GPU for --verify gpu", between(0, 63));
  command->add_option("--arch", c.architecture, "GPU architecture for NVRTC")->capture_default_str();
  command->add_flag("--quiet", o.quiet, "Print nothing");
  command->require_subcommand(0, 1);
  command->footer(
      "Examples:\n"
      "  ferrite irsynth -n 1000 -o pairs\n"
      "  ferrite irsynth -n 1000000 -o train --format jsonl --verify compile --backward\n"
      "  ferrite irsynth -n 200 -o small -c arithmetic stencil --levels 0:4 -d cpu -s 7\n"
      "  ferrite irsynth stats train\n"
      "  ferrite irsynth validate train --compile");
  act_alone(*command, [&action, options] {
    if (options->out.empty()) throw CLI::RequiredError("--output");
    action = [options] { return generate(*options); };
  });

  CLI::App* stats = command->add_subcommand("stats", "What is in a folder of pairs, as JSON");
  stats->add_option("folder", o.folder, "What irsynth wrote")->required();
  stats->callback([&action, options] {
    action = [options] {
      fmt::print("{}\n", dataset_statistics(options->folder));
      return success;
    };
  });
  CLI::App* check = command->add_subcommand("validate", "Verify everything in a folder of pairs again");
  check->add_option("folder", o.folder, "What irsynth wrote")->required();
  check->add_flag("--compile", o.compile, "By NVRTC too");
  check->add_option("-j,--jobs", o.jobs, "Threads")->check(whole_number);
  check->add_flag("--quiet", o.quiet, "No progress");
  check->callback([&action, options] { action = [options] { return validate(*options); }; });
}

}  // namespace ferrite::cli
