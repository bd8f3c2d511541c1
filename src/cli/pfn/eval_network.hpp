// The network as a model that `ferrite pfn eval` evaluates.
#pragma once

#include <optional>

#include "cli/command.hpp"
#include "ferrite/models/pfn/evaluation.hpp"

namespace ferrite::cli::pfn {

struct NetworkOptions {
  std::string weights, backend = "auto", precision = "auto";
  std::int64_t members = 4;
  std::uint64_t seed = 0;
};
void add_precision_option(CLI::App& command, std::string& precision);
/// Adds --weights, --members, --backend and --precision.
void add_network_options(CLI::App& command, NetworkOptions& options);

/// None, and a sentence that says how to get weights, if there are none.
std::optional<ferrite::pfn::Candidate> network_of(const NetworkOptions& options, ferrite::pfn::Task task,
                                                  std::vector<std::string>& notices);

}  // namespace ferrite::cli::pfn
