// Subcommands of `ferrite pfn`: each adds itself, and sets `action` when it is chosen.
#pragma once

#include "cli/command.hpp"

namespace ferrite::cli {

void add_pfn_train(CLI::App& pfn, Action& action);
void add_pfn_eval(CLI::App& pfn, Action& action);
void add_pfn_export(CLI::App& pfn, Action& action);
void add_pfn_predict(CLI::App& pfn, Action& action);

}  // namespace ferrite::cli
