// ferrite pfn export: the weights of a run, without what is needed only to go on training.
#include "cli/pfn/export.hpp"

#include <fmt/format.h>

#include "cli/pfn/pfn.hpp"
#include "ferrite/models/pfn/file.hpp"

namespace ferrite::cli {
namespace pfn {
namespace fs = std::filesystem;
namespace {

/// What says how the network was made goes along.
std::map<std::string, std::string> settings_of(const fs::path& path) {
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : train::read_settings(path))
    if (name != "checksum" && name != "format") kept[name] = value;
  return kept;
}

}  // namespace

std::string export_weights(const fs::path& checkpoint, const fs::path& out, DType dtype) {
  ferrite::pfn::read_config(checkpoint).check();
  std::error_code ignored;
  if (fs::equivalent(checkpoint, out, ignored))
    throw ValueError(fmt::format("[pfn export] {}: is the checkpoint itself: choose another", out.string()));
  train::write_weights(out, ferrite::pfn::rounded(train::read_weights(checkpoint), dtype),
                       settings_of(checkpoint));
  return fmt::format("{}: {:.1f} MB, from {:.1f} MB", out.string(),
                     static_cast<double>(fs::file_size(out)) / 1e6,
                     static_cast<double>(fs::file_size(checkpoint)) / 1e6);
}

}  // namespace pfn
namespace {

struct ExportOptions {
  std::string from, out, dtype = "bf16";
};

int run_export(const ExportOptions& o) {
  fmt::print("{}\n", pfn::export_weights(o.from, o.out, o.dtype == "f32" ? DType::f32 : DType::bf16));
  return success;
}

}  // namespace

void add_pfn_export(CLI::App& pfn, Action& action) {
  auto o = std::make_shared<ExportOptions>();
  CLI::App* command = pfn.add_subcommand("export", "Write the weights of a checkpoint to a smaller file");
  command
      ->add_option("checkpoint", o->from,
                   "A file of `ferrite pfn train`; of averaged weights, if it has them")
      ->required();
  command->add_option("--out", o->out, "The file of weights; `predict` and `eval` take it")->required();
  add_checked(*command, "--dtype", o->dtype, "What the weights are rounded to",
              CLI::IsMember({"bf16", "f32"}));
  command->footer(
      "Examples:\n"
      "  ferrite pfn export run/step-00020000.safetensors --out classification.safetensors\n"
      "  FERRITE_PFN_WEIGHTS=classification.safetensors ferrite pfn eval data.csv --target y");
  command->callback([&action, o] { action = [o] { return run_export(*o); }; });
}

}  // namespace ferrite::cli
