// ferrite gpt import: weights of Hugging Face's transformers to a model file.
#include "cli/gpt/conversion.hpp"
#include "cli/gpt/gpt.hpp"

namespace ferrite::cli {
namespace {

struct ImportOptions {
  std::string from, out;
  std::string dtype = "f32";
  bool json = false;
};

int run_import(const ImportOptions& o) {
  double seconds = 0;
  ferrite::gpt::Converted result;
  {
    ProgressLine bar(o.json ? nullptr : stderr);
    const auto config = ferrite::gpt::ImportConfig{}
                            .with_dtype(dtype_from_string(o.dtype))
                            .with_progress(gpt::progress_on(bar));
    result = ferrite::gpt::import_hugging_face(o.from, o.out, config);
    seconds = bar.seconds();
  }
  gpt::print_conversion(result, seconds, o.json);
  return success;
}

}  // namespace

void add_gpt_import(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<ImportOptions>();
  CLI::App* command = gpt.add_subcommand(
      "import",
      "Make a model file from weights of Hugging Face's transformers: GPT-2, Llama, Mistral, Qwen2");
  command
      ->add_option("--from", o->from,
                   "Folder with config.json and model.safetensors (or its shards), or a .safetensors file")
      ->required();
  command->add_option("--out", o->out, "The model file")->required();
  add_checked(*command, "--dtype", o->dtype, "Of the weights in the file",
              CLI::IsMember({"f32", "bf16", "f16"}));
  command->add_flag("--json", o->json, "Print the result as JSON");
  command->footer(
      "Weights go through memory one tensor at a time. A run that fails leaves no file.\n"
      "Examples:\n"
      "  ferrite gpt import --from hf_folder --out gpt2.safetensors\n"
      "  ferrite gpt import --from Llama-3.2-1B --out llama.safetensors --dtype bf16\n"
      "  ferrite gpt import --from model.safetensors --out gpt2.safetensors --dtype bf16 --json");
  command->callback([&action, o] { action = [o] { return run_import(*o); }; });
}

}  // namespace ferrite::cli
