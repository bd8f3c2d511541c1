// The options that choose a prior, the same for every command about priors.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.hpp"
#include "ferrite/models/priors/config.hpp"

namespace ferrite::cli {

struct PriorOptions {
  std::string preset, family, config, rows, features, classes, task, backend = "cpu";
  std::int64_t datasets = 256, first = 0;
  std::uint64_t seed = 0;

  void add_to(CLI::App& command);
  /// The preset or the file's config with the options on top.
  priors::Config prior() const;
};

/// Adds `ferrite priors stats`.
void add_prior_stats(CLI::App& priors, Action& action);

}  // namespace ferrite::cli
