// ferrite gpt train: a language model from token files.
#include "cli/gpt/train.hpp"

#include <fmt/format.h>

#include "cli/backend_option.hpp"
#include "cli/gpt/gpt.hpp"
#include "cli/gpt/model.hpp"
#include "cli/training_run.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/text/bpe.hpp"
#include "ferrite/train/gpt_file.hpp"

namespace ferrite::cli {
namespace {

using namespace gpt;

/// The sizes that were given; those that were not are those of --size.
struct Sizes {
  std::string size = "gpt2";
  std::optional<std::int64_t> layers, heads, dim, context, vocab;
  double dropout = 0;
};

nn::GptConfig model_of(const Sizes& sizes, const std::string& tokenizer) {
  nn::GptConfig config = config_of_size(sizes.size);
  config.layers = sizes.layers.value_or(config.layers);
  config.heads = sizes.heads.value_or(config.heads);
  config.dim = sizes.dim.value_or(config.dim);
  config.context = sizes.context.value_or(config.context);
  if (sizes.vocab)
    config.vocab = *sizes.vocab;
  else if (!tokenizer.empty())
    config.vocab = text::BytePairTokenizer::load(tokenizer).vocabulary_size();
  config.dropout = sizes.dropout;
  config.check();
  return config;
}

/// Whatever the file has, parameters are trained in f32.
nn::GptConfig model_of_file(const std::string& file, double dropout) {
  nn::GptConfig config = read_model_config("--from", file);
  if (config.quantized)
    throw ValueError(
        fmt::format("[gpt train] --from {}: it has weights of 8 bits, which cannot be trained: "
                    "give the file that it was made from",
                    file));
  config.dtype = DType::f32;
  config.dropout = dropout;
  config.check();
  return config;
}

/// Fills in what follows from other options. Throws ValueError for what cannot be.
void complete(TrainOptions& o, const Sizes& sizes) {
  o.model = o.from ? model_of_file(*o.from, sizes.dropout) : model_of(sizes, o.tokenizer);
  if (o.length == 0) o.length = o.model.context;
  if (o.length > o.model.context)
    throw ValueError(fmt::format("[gpt train] --length {}: the model's context has {}: give a {}", o.length,
                                 o.model.context, o.from ? "smaller --length" : "larger --context"));
  if (o.warmup < 0) o.warmup = std::min<std::int64_t>(700, o.steps / 20);
  if (o.sample_every > 0 && o.tokenizer.empty())
    throw ValueError("[gpt train] --sample-every: needs the --tokenizer of the data");
  check_folder_of_run("gpt train", o.out, o.resume);
}

int run_train(TrainOptions o, const Sizes& sizes) {
  complete(o, sizes);
  TrainingRanks ranks;
  o.json = o.json && ranks.is_first();
  o.quiet = o.quiet || o.json || !ranks.is_first();
  AnyBackend backend(ranks.backend(o.backend));
  ranks.connect(backend.device());
  if (Cuda* cuda = backend.get_if<Cuda>(); cuda && o.fastest) cuda->set_determinism(Determinism::fastest);
  o.precision = precision_on(backend, o.precision);
  const bool is_16bit = o.precision != "f32";
  try {
    if (!is_16bit) return train_f32(backend, ranks, o);
    return train_16bit(backend, ranks, o.precision == "f16" ? DType::f16 : DType::bf16, o);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(too_large("gpt train", o, backend, is_16bit, error.what()));
  }
}

void add_model(CLI::App& command, Sizes& sizes, std::optional<std::string>& from) {
  CLI::Option* file = command.add_option(
      "--from", from,
      "Start from this model file, of `gpt import` or of another run, and not from new weights");
  command.add_option("--size", sizes.size, "Sizes of the model, which the next options change")
      ->excludes(file)
      ->check(CLI::IsMember({"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"}))
      ->capture_default_str();
  const auto count = [&](const char* name, std::optional<std::int64_t>& value, const char* help) {
    command.add_option(name, value, help)->excludes(file)->check(positive_number);
  };
  count("--layers", sizes.layers, "Blocks");
  count("--heads", sizes.heads, "Heads of the attention; they divide --dim");
  count("--dim", sizes.dim, "Width of the residual stream");
  count("--context", sizes.context, "Most tokens that the model sees at once");
  count("--vocab", sizes.vocab, "Tokens that there are; default: those of --tokenizer, or of --size");
  command.add_option("--dropout", sizes.dropout, "Share of elements that are zeroed in training")
      ->capture_default_str();
}

void add_course(CLI::App& command, TrainOptions& o) {
  const auto count = [&](const char* name, std::int64_t& value, const char* help) {
    return add_checked(command, name, value, help, whole_number);
  };
  count("--batch", o.batch, "Rows of a batch, on each rank")->check(positive_number);
  count("--length", o.length, "Tokens of a row; 0: the model's context");
  count("--micro-batches", o.micro_batches, "Batches whose gradients make one update")
      ->check(positive_number);
  count("--steps", o.steps, "Updates of the whole run")->check(positive_number)->required();
  add_checked(command, "--lr", o.lr, "Largest learning rate; it falls to a tenth, along a cosine",
              positive_number);
  command.add_option("--warmup", o.warmup, "Steps until it is reached; default: steps / 20, at most 700")
      ->check(whole_number);
  add_checked(command, "--weight-decay", o.weight_decay, "Of matrices; biases and norms have none",
              nonnegative_number);
  add_checked(command, "--clip", o.clip, "Largest norm of the gradients; 0: any", nonnegative_number);
  add_checked(command, "--seed", o.seed, "Of the weights and of the order of the data", whole_number);
  count("--report-every", o.report_every, "Steps between reports")->check(positive_number);
  count("--evaluate-every", o.evaluate_every, "Steps between evaluations on --valid; 0: only at the end");
  count("--evaluate-batches", o.evaluate_batches, "Batches of an evaluation")->check(positive_number);
  count("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints; 0: only at the end");
  count("--sample-every", o.sample_every,
        "Steps between texts that the model writes, each at the next report; 0: none");
}

}  // namespace

nn::GptConfig gpt::config_of_size(std::string_view size) {
  return size == "gpt2-medium"  ? nn::GptConfig::gpt2_medium()
         : size == "gpt2-large" ? nn::GptConfig::gpt2_large()
         : size == "gpt2-xl"    ? nn::GptConfig::gpt2_xl()
                                : nn::GptConfig::gpt2();
}

void add_gpt_train(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<TrainOptions>();
  auto sizes = std::make_shared<Sizes>();
  CLI::App* command = gpt.add_subcommand("train", "Train a model on token files");
  command->add_option("--data", o->data, "Token files, or patterns in quotes, such as 'train_*.bin'")
      ->required();
  command->add_option("--valid", o->valid, "Token files to evaluate on, in whole batches");
  command->add_option("--dtype", o->dtype, "u16 or u32, for files of bare tokens without a header")
      ->check(CLI::IsMember({"u16", "u32"}));
  command->add_option("--out", o->out, "Folder of the run: checkpoints, metrics.jsonl, metrics.html")
      ->required();
  add_model(*command, *sizes, o->from);
  add_course(*command, *o);
  command->add_flag("--resume", o->resume, "Go on from the newest checkpoint in --out, if there is one");
  add_backend_option(command, o->backend, "Where to train");
  add_checked(*command, "--precision", o->precision,
              "Of products: bf16, f16 (with a scaled loss) or f32; auto: bf16 on a GPU",
              CLI::IsMember({"auto", "bf16", "f16", "f32"}));
  command->add_flag("--fastest", o->fastest,
                    "Gradients whose last bits may change from run to run, on a GPU");
  command->add_flag("--shard-optimizer", o->shard_optimizer,
                    "With several ranks: each keeps a share of the optimiser's state (ZeRO-1); same weights");
  command->add_option("--tokenizer", o->tokenizer, "For --sample-every: that of the data");
  command->add_option("--prompt", o->prompt, "How the texts of --sample-every begin")
      ->needs("--sample-every");
  command->add_flag("--json", o->json, "Print the result as JSON, and nothing on the way")
      ->excludes("--sample-every");
  command->add_flag("--quiet", o->quiet, "Print nothing but the texts");
  command->footer(
      "Ctrl-C saves a checkpoint and ends the run, with exit code 130; with the same options --resume goes\n"
      "on, as if it had not been interrupted. The model is in OUT/best.safetensors (least loss on --valid)\n"
      "and OUT/step-*.safetensors; `ferrite gpt generate` reads both. OUT/metrics.html shows how the run\n"
      "goes.\n"
      "Examples:\n"
      "  ferrite gpt train --data 'train_*.bin' --valid 'val_*.bin' --batch 64 --micro-batches 8 --steps "
      "20000 "
      "--out run\n"
      "  ferrite gpt train --data book.bin --tokenizer mine.bpe --layers 4 --heads 4 --dim 128 --context 128 "
      "--steps 2000 --sample-every 200 --out small\n"
      "  ferrite gpt train --data 'train_*.bin' --batch 64 --micro-batches 8 --steps 20000 --out run "
      "--resume\n"
      "  ferrite gpt train --from gpt2.safetensors --data mine.bin --lr 3e-5 --steps 500 --out tuned\n"
      "  ferrite gpt train --data nanogpt/train.bin --dtype u16 --batch 8 --steps 1000 --out run --json\n"
      "  mpirun -n 4 ferrite gpt train --data 'train_*.bin' --batch 16 --steps 20000 --out run\n"
      "  torchrun --no-python --nproc-per-node 8 ferrite gpt train --data 'train_*.bin' --batch 64 --steps "
      "20000 --shard-optimizer --out run");
  command->callback([&action, o, sizes] { action = [o, sizes] { return run_train(*o, *sizes); }; });
}

}  // namespace ferrite::cli
