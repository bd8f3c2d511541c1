// --delimiter, the same for every subcommand that reads CSV files.
#pragma once

#include "cli/command.hpp"

namespace ferrite::cli {

/// Adds --delimiter, which is one character, or \t for a tab, as shells do not make one easily. `value`
/// holds the default, and must outlive the command.
inline CLI::Option* add_delimiter_option(CLI::App& command, char& value) {
  const auto read = [&value](const std::string& text) {
    if (text.size() != 1 && text != "\\t")
      throw CLI::ValidationError("--delimiter", "'" + text + "': give one character, or \\t for a tab");
    value = text == "\\t" ? '\t' : text[0];
  };
  return command
      .add_option_function<std::string>("--delimiter", read,
                                        "Between the fields of a CSV file; \\t: a tab, as .tsv files have")
      ->default_str(std::string(1, value));
}

}  // namespace ferrite::cli
