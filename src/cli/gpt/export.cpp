// ferrite gpt export: a model file to a folder that Hugging Face's transformers load.
#include "cli/gpt/conversion.hpp"
#include "cli/gpt/gpt.hpp"
#include "cli/gpt/model.hpp"

namespace ferrite::cli {
namespace {

struct ExportOptions {
  std::string model, to;
  bool json = false;
};

int run_export(const ExportOptions& o) {
  gpt::check_model_file("--model", o.model);
  double seconds = 0;
  ferrite::gpt::Converted result;
  {
    ProgressLine bar(o.json ? nullptr : stderr);
    result = ferrite::gpt::export_hugging_face(o.model, o.to, gpt::progress_on(bar));
    seconds = bar.seconds();
  }
  gpt::print_conversion(result, seconds, o.json);
  return success;
}

}  // namespace

void add_gpt_export(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<ExportOptions>();
  CLI::App* command =
      gpt.add_subcommand("export", "Write a model file as a folder for Hugging Face's transformers");
  command->add_option("--model", o->model, "The model file, or a checkpoint of one")->required();
  command->add_option("--to", o->to, "Folder for config.json and model.safetensors")->required();
  command->add_flag("--json", o->json, "Print the result as JSON");
  command->footer(
      "GPT2LMHeadModel.from_pretrained(folder) loads the result.\n"
      "Examples:\n"
      "  ferrite gpt export --model gpt2.safetensors --to hf_folder\n"
      "  ferrite gpt export --model run/best.safetensors --to hf_folder --json");
  command->callback([&action, o] { action = [o] { return run_export(*o); }; });
}

}  // namespace ferrite::cli
