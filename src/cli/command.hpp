// What the subcommands of `ferrite` share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace ferrite::cli {

/// Exit codes, the same for every subcommand.
enum Exit : int { success = 0, difference = 1, bad_input = 2 };

/// What the chosen subcommand does; returns an exit code.
using Action = std::function<int()>;

// Each adds one subcommand, which sets `action` when it is chosen.
void add_ops(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_priors(CLI::App& app, Action& action);
void add_kernel(CLI::App& app, Action& action);
void add_irsynth(CLI::App& app, Action& action);

}  // namespace ferrite::cli
