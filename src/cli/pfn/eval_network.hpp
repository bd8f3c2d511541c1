// The network as a model that `ferrite pfn eval` evaluates.
#pragma once

#include <optional>

#include "cli/command.hpp"
#include "ferrite/models/pfn/evaluation.hpp"

namespace ferrite::cli::pfn {

/// How much is kept of the train rows, in units for people.
struct ContextOptions {
  std::int64_t rows = ferrite::pfn::PredictorConfig{}.context_rows;
  double gib = 0;

  /// The config with these. ValueError in the name of the command for a memory that makes no sense.
  ferrite::pfn::PredictorConfig config(const ferrite::pfn::PredictorConfig& from,
                                       std::string_view command) const;
};
/// Adds --context-rows and --memory, which it gives.
std::vector<CLI::Option*> add_context_options(CLI::App& command, ContextOptions& options);

struct NetworkOptions {
  std::string weights, backend = "auto", precision = "auto";
  std::int64_t members = 4;
  std::uint64_t seed = 0;
  ContextOptions context;
};
void add_precision_option(CLI::App& command, std::string& precision);
/// Adds --weights, --members, --backend, --precision, --context-rows and --memory.
void add_network_options(CLI::App& command, NetworkOptions& options);

/// None, and a sentence that says how to get weights, if there are none.
std::optional<ferrite::pfn::Candidate> network_of(const NetworkOptions& options, ferrite::pfn::Task task,
                                                  std::vector<std::string>& notices);

}  // namespace ferrite::cli::pfn
