// ferrite dist plan: what a training on many GPUs would take.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/gpt/train.hpp"
#include "cli/show_json.hpp"
#include "ferrite/dist/plan.hpp"

namespace ferrite::cli {
namespace {

struct DistPlanOptions {
  std::string model = "gpt2", link = "nvlink+ib";
  dist::PlanConfig config;
  bool json = false;
};

std::string names_of(const auto& all) {
  std::string names;
  for (const auto& one : all) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

/// "nvlink+ib": inside nodes, and between them. One name is for both.
dist::PlanConfig with_link(const dist::PlanConfig& config, const std::string& text) {
  const std::size_t plus = text.find('+');
  return config.with_links(text.substr(0, plus), plus == std::string::npos ? text : text.substr(plus + 1));
}

nlohmann::ordered_json to_json(const dist::PlanConfig& config, const dist::Plan& plan) {
  return {{"gpus", config.gpus},       {"sharding", to_string(config.sharding)},
          {"seconds", plan.seconds},   {"products", plan.products},
          {"elements", plan.elements}, {"update", plan.update},
          {"sent", plan.sent},         {"exposed", plan.exposed},
          {"bytes", plan.bytes},       {"fits", plan.fits},
          {"scaling", plan.scaling},   {"tokens_per_second", plan.tokens_per_second}};
}

/// 1, 2, 4, ... up to the number that is asked for.
std::vector<std::int64_t> gpu_counts(const dist::PlanConfig& config) {
  std::vector<std::int64_t> counts;
  for (std::int64_t n = 1; n < config.gpus; n *= 2)
    if (n <= config.gpus_per_node || n % config.gpus_per_node == 0) counts.push_back(n);
  counts.push_back(config.gpus);
  return counts;
}

int run_dist_plan(const DistPlanOptions& o) {
  const dist::PlanConfig asked = with_link(o.config, o.link).with_model(gpt::config_of_size(o.model));
  asked.check();
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (!o.json) {
    fmt::print(
        "{} ({:.0f}M parameters) on {} with {}: {} micro-batches of {} rows of {} tokens on each GPU\n\n",
        o.model, static_cast<double>(asked.model.parameter_count()) / 1e6, asked.gpu, o.link,
        asked.micro_batches, asked.batch, asked.length);
    fmt::print("{:>5}  {:<14}{:>10}{:>12}{:>9}{:>11}{:>10}{:>10}\n", "GPUs", "", "step", "tokens/s",
               "scaling", "computing", "waiting", "memory");
  }
  for (const std::int64_t gpus : gpu_counts(asked)) {
    for (const dist::Sharding sharding : {dist::Sharding::data_parallel, dist::Sharding::zero1}) {
      if (gpus == 1 && sharding == dist::Sharding::zero1) continue;
      const dist::PlanConfig config = asked.with_gpus(gpus).with_sharding(sharding);
      const dist::Plan plan = dist::plan_training(config);
      all.push_back(to_json(config, plan));
      if (o.json) continue;
      fmt::print("{:>5}  {:<14}{:>7.1f} ms{:>12}{:>8.1f}%{:>8.1f} ms{:>7.1f} ms{:>6.1f} GB{}\n", gpus,
                 to_string(sharding), 1e3 * plan.seconds,
                 fmt::format("{:.0f}k", plan.tokens_per_second / 1e3), 100 * plan.scaling,
                 1e3 * (plan.products + plan.elements + plan.update), 1e3 * plan.exposed, plan.bytes / 1e9,
                 plan.fits ? "" : " too much");
    }
  }
  if (o.json)
    show_json(all);
  else
    fmt::print("\nA model of the machine, not a measurement: docs/distributed.md says how good it is.\n");
  return success;
}

void add_plan(CLI::App& dist, Action& action) {
  auto o = std::make_shared<DistPlanOptions>();
  CLI::App* command =
      dist.add_subcommand("plan", "Predict step time, memory and scaling of a training on many GPUs");
  const auto count = [&](const char* name, std::int64_t& value, const char* help) {
    add_checked(*command, name, value, help, positive_number);
  };
  add_checked(*command, "--model", o->model, "Sizes of the model",
              CLI::IsMember({"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"}));
  count("--gpus", o->config.gpus, "Up to how many");
  command->add_option("--gpu", o->config.gpu, "Which: " + names_of(dist::known_gpus()))
      ->capture_default_str();
  command->add_option("--link", o->link, "Inside nodes + between them, of " + names_of(dist::known_links()))
      ->capture_default_str();
  count("--gpus-per-node", o->config.gpus_per_node, "GPUs of a node");
  count("--batch", o->config.batch, "Rows of a micro-batch on each GPU");
  count("--length", o->config.length, "Tokens of a row");
  count("--micro-batches", o->config.micro_batches, "Micro-batches of a step on each GPU");
  command->add_option("--gradient-bytes", o->config.gradient_bytes, "Of a gradient when it is sent: 4 or 2")
      ->capture_default_str();
  command->add_flag("--json", o->json, "Print the plans as JSON");
  command->footer(
      "Examples:\n"
      "  ferrite dist plan --model gpt2-xl --gpus 64 --link nvlink+ib --batch 16 --micro-batches 8\n"
      "  ferrite dist plan --gpus 4 --gpu a100 --link pcie4 --json");
  command->callback([&action, o] { action = [o] { return run_dist_plan(*o); }; });
}

}  // namespace

void add_dist(CLI::App& app, Action& action) {
  CLI::App* dist = app.add_subcommand("dist", "Training on many GPUs: what it would take");
  dist->require_subcommand(1);
  add_plan(*dist, action);
}

}  // namespace ferrite::cli
