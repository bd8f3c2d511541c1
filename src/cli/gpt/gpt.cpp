// ferrite gpt: language models, from text to tokens.
#include "cli/gpt/gpt.hpp"

namespace ferrite::cli {

void add_gpt(CLI::App& app, Action& action) {
  CLI::App* gpt = app.add_subcommand("gpt", "Language models: tokenizers and token files");
  gpt->require_subcommand(1);
  gpt->footer(
      "Examples:\n"
      "  ferrite gpt tokenizer train --text 'books/*.txt' --vocab 4096 --out mine.bpe\n"
      "  ferrite gpt tokens --text 'books/*.txt' --tokenizer mine.bpe --out 'shard_%04d.bin'");
  add_gpt_tokenizer(*gpt, action);
  add_gpt_tokens(*gpt, action);
}

}  // namespace ferrite::cli
