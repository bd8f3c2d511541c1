// How the subcommands of `ferrite pfn` read tables of somebody else.
#pragma once

#include "cli/command.hpp"
#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::cli::pfn {

struct TableOptions {
  std::string target, task = "auto";
  ferrite::pfn::EncoderConfig encoder;
  ferrite::pfn::TableConfig table;

  /// The encoder's config with the task. ValueError if the target is to be dropped, or a category.
  ferrite::pfn::EncoderConfig encoder_config(std::string_view command) const;
};

/// Adds --missing, --header, --delimiter and --rename-duplicates, and --target, --task, --drop,
/// --categories and --day-first, which it gives.
std::vector<CLI::Option*> add_table_options(CLI::App& command, TableOptions& options);

}  // namespace ferrite::cli::pfn
