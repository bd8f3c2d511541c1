#include "cli/pfn/eval_network.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "cli/backend_option.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/models/pfn/file.hpp"

namespace ferrite::cli::pfn {

void add_precision_option(CLI::App& command, std::string& precision) {
  add_checked(command, "--precision", precision,
              "What the network computes with; auto: bf16 on a GPU, where it is several times as fast, "
              "f32 elsewhere",
              CLI::IsMember({"auto", "f32", "bf16"}));
}

ferrite::pfn::PredictorConfig ContextOptions::config(const ferrite::pfn::PredictorConfig& from,
                                                     std::string_view command) const {
  if (!(gib >= 0 && gib <= 0x1p20))
    throw ValueError(fmt::format("[{}] --memory {}: must lie between 0 and 2^20 GiB", command, gib));
  return from.with_context_rows(rows).with_context_bytes(static_cast<std::int64_t>(std::ceil(gib * 0x1p30)));
}

std::vector<CLI::Option*> add_context_options(CLI::App& command, ContextOptions& options) {
  return {add_checked(command, "--context-rows", options.rows,
                      "Train rows that are read; of more, each member reads a sample", whole_number),
          command
              .add_option("--memory", options.gib,
                          "GiB for what is kept of the train rows; less room makes smaller samples. 0: 8, or "
                          "half of the memory here (of what is free on the GPU) if that is less")
              ->capture_default_str()};
}

void add_network_options(CLI::App& command, NetworkOptions& options) {
  command.add_option(
      "--weights", options.weights,
      "Of the network: a file of `ferrite pfn train`; default: what FERRITE_PFN_WEIGHTS names, "
      "else those that come with ferrite");
  add_checked(command, "--members", options.members, "Of the network's ensemble", between(1, 1000));
  add_backend_option(&command, options.backend, "Where the network runs");
  add_precision_option(command, options.precision);
  add_context_options(command, options.context);
}

std::optional<ferrite::pfn::Candidate> network_of(const NetworkOptions& options, ferrite::pfn::Task task,
                                                  std::vector<std::string>& notices) {
  auto config = options.context.config({}, "pfn eval")
                    .with_weights(options.weights)
                    .with_backend(options.backend)
                    .with_precision(ferrite::pfn::precision_from_string(options.precision))
                    .with_members(options.members)
                    .with_records(true)  // the command has no other thread that uses the GPU
                    .with_seed(options.seed);
  const char* const named = std::getenv("FERRITE_PFN_WEIGHTS");
  if (options.weights.empty() && named && *named) {  // a file of weights may be for the other task
    config = config.with_weights(ferrite::pfn::default_weights(task).string());
    if (const auto other = ferrite::pfn::read_config(config.weights).task; other != task) {
      notices.push_back(fmt::format("the network is left out: {}, which FERRITE_PFN_WEIGHTS names, is for {}",
                                    config.weights, to_string(other)));
      return std::nullopt;
    }
  } else if (options.weights.empty()) {
    try {
      config = config.with_weights(ferrite::pfn::default_weights(task).string());
    } catch (const ValueError&) {
      notices.push_back(
          fmt::format("the network is left out, as it has no weights: train some "
                      "with `ferrite pfn train --task {} --steps 20000 --out run` and give --weights "
                      "run/step-00020000.safetensors",
                      to_string(task)));
      return std::nullopt;
    }
  }
  return ferrite::pfn::network_candidate(config);
}

}  // namespace ferrite::cli::pfn
