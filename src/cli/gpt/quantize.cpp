// ferrite gpt quantize: a model file with weights of 8 bits.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/gpt/gpt.hpp"
#include "cli/gpt/model.hpp"
#include "cli/gpt/text_files.hpp"
#include "cli/show_json.hpp"
#include "ferrite/stacks/any_backend.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli {
namespace {

struct QuantizeOptions {
  std::string model, out;
  bool json = false;
};

int run_quantize(const QuantizeOptions& o) {
  if (gpt::read_model_config("--model", o.model).quantized)
    throw ValueError(fmt::format("[gpt quantize] {}: has weights of 8 bits already", o.model));
  std::error_code ignored;
  if (std::filesystem::equivalent(o.model, o.out, ignored))
    throw ValueError(fmt::format("[gpt quantize] --out {}: is the model itself: choose another file", o.out));
  AnyBackend backend("cpu");
  nn::Gpt<AnyBackend> model = train::load_gpt(backend, o.model);
  model.quantize();
  train::save_gpt(o.out, model);
  const auto before = std::filesystem::file_size(o.model), after = std::filesystem::file_size(o.out);
  if (o.json) {
    const nlohmann::ordered_json object{{"out", o.out},
                                        {"parameters", model.config().parameter_count()},
                                        {"before", before},
                                        {"bytes", after}};
    show_json(object);
  } else {
    fmt::print("{} for {} parameters, from {}: {}\n", gpt::size_text(static_cast<double>(after)),
               model.config().parameter_count(), gpt::size_text(static_cast<double>(before)), o.out);
  }
  return success;
}

}  // namespace

void add_gpt_quantize(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<QuantizeOptions>();
  CLI::App* command =
      gpt.add_subcommand("quantize", "Make a model file with weights of 8 bits, for inference");
  command->add_option("--model", o->model, "The model file, or a checkpoint of one")->required();
  command->add_option("--out", o->out, "The smaller file; `generate` and `eval` take it as any other")
      ->required();
  command->add_flag("--json", o->json, "Print the result as JSON");
  command->footer(
      "Every row of a matrix has a scale, so that its largest weight is 127 of it.\n"
      "Examples:\n"
      "  ferrite gpt quantize --model gpt2.safetensors --out gpt2_int8.safetensors\n"
      "  ferrite gpt quantize --model run/best.safetensors --out small.safetensors --json");
  command->callback([&action, o] { action = [o] { return run_quantize(*o); }; });
}

}  // namespace ferrite::cli
