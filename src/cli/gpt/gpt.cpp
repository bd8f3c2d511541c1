// ferrite gpt: language models, from text to tokens, training, and back to text; and their weights.
#include "cli/gpt/gpt.hpp"

namespace ferrite::cli {

void add_gpt(CLI::App& app, Action& action) {
  CLI::App* gpt = app.add_subcommand(
      "gpt", "Language models: tokenizers, token files, training, texts and their losses, weights");
  gpt->require_subcommand(1);
  gpt->footer(
      "Examples:\n"
      "  ferrite gpt tokenizer train --text 'books/*.txt' --vocab 4096 --out mine.bpe\n"
      "  ferrite gpt tokens --text 'books/*.txt' --tokenizer mine.bpe --out 'shard_%04d.bin'\n"
      "  ferrite gpt train --data 'shard_*.bin' --steps 20000 --batch 64 --micro-batches 8 --out run\n"
      "  ferrite gpt eval --model run/best.safetensors --data 'val_*.bin'\n"
      "  ferrite gpt generate --model run/best.safetensors --tokenizer mine.bpe --prompt 'Once upon'\n"
      "  ferrite gpt import --from hf_folder --out gpt2.safetensors");
  add_gpt_tokenizer(*gpt, action);
  add_gpt_tokens(*gpt, action);
  add_gpt_train(*gpt, action);
  add_gpt_eval(*gpt, action);
  add_gpt_generate(*gpt, action);
  add_gpt_bench(*gpt, action);
  add_gpt_import(*gpt, action);
  add_gpt_export(*gpt, action);
  add_gpt_quantize(*gpt, action);
}

}  // namespace ferrite::cli
