// ferrite pfn export: the weights of a run, without what is needed only to go on training.
#include <fmt/format.h>

#include <filesystem>

#include "cli/pfn/pfn.hpp"
#include "ferrite/models/pfn/file.hpp"

namespace ferrite::cli {
namespace {

struct Options {
  std::string from, out, dtype = "bf16";
};

/// What says how the network was made goes along.
std::map<std::string, std::string> settings_of(const std::string& path) {
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : train::read_settings(path))
    if (name != "checksum" && name != "format") kept[name] = value;
  return kept;
}

int run(const Options& o) {
  ferrite::pfn::read_config(o.from).check();
  std::error_code ignored;
  if (std::filesystem::equivalent(o.from, o.out, ignored))
    throw ValueError(fmt::format("[pfn export] --out {}: is the file itself: choose another", o.out));
  const DType dtype = o.dtype == "f32" ? DType::f32 : DType::bf16;
  train::write_weights(o.out, ferrite::pfn::rounded(train::read_weights(o.from), dtype), settings_of(o.from));
  fmt::print("{}: {:.1f} MB, from {:.1f} MB\n", o.out,
             static_cast<double>(std::filesystem::file_size(o.out)) / 1e6,
             static_cast<double>(std::filesystem::file_size(o.from)) / 1e6);
  return success;
}

}  // namespace

void add_pfn_export(CLI::App& pfn, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* command = pfn.add_subcommand("export", "Write the weights of a checkpoint to a smaller file");
  command
      ->add_option("checkpoint", o->from,
                   "A file of `ferrite pfn train`; of averaged weights, if it has them")
      ->required();
  command->add_option("--out", o->out, "The file of weights; `predict` and `eval` take it")->required();
  command->add_option("--dtype", o->dtype, "What the weights are rounded to")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  ferrite pfn export run/step-00020000.safetensors --out classification.safetensors\n"
      "  FERRITE_PFN_WEIGHTS=classification.safetensors ferrite pfn eval data.csv --target y");
  command->callback([&action, o] { action = [o] { return run(*o); }; });
}

}  // namespace ferrite::cli
