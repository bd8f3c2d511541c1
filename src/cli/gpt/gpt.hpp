// Subcommands of `ferrite gpt`: each adds itself, and sets `action` when it is chosen.
#pragma once

#include "cli/command.hpp"

namespace ferrite::cli {

void add_gpt_tokens(CLI::App& gpt, Action& action);
void add_gpt_tokenizer(CLI::App& gpt, Action& action);
void add_gpt_import(CLI::App& gpt, Action& action);
void add_gpt_export(CLI::App& gpt, Action& action);
void add_gpt_quantize(CLI::App& gpt, Action& action);
void add_gpt_bench(CLI::App& gpt, Action& action);
void add_gpt_train(CLI::App& gpt, Action& action);
void add_gpt_eval(CLI::App& gpt, Action& action);
void add_gpt_generate(CLI::App& gpt, Action& action);

}  // namespace ferrite::cli
