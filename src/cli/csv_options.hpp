// --delimiter and --header, the same for every subcommand that reads CSV files.
#pragma once

#include <map>

#include "cli/command.hpp"
#include "ferrite/io/csv.hpp"

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

/// Adds --header. `value` must outlive the command.
inline CLI::Option* add_header_option(CLI::App& command, CsvHeader& value) {
  static const std::map<std::string, CsvHeader> choices{
      {"automatic", CsvHeader::automatic}, {"present", CsvHeader::present}, {"absent", CsvHeader::absent}};
  return command
      .add_option_function<std::string>(
          "--header", [&value](const std::string& name) { value = choices.at(name); },
          "Whether the first row of a CSV file has names; automatic: unless all of it are numbers")
      ->check(CLI::IsMember(choices))
      ->default_str("automatic");
}

}  // namespace ferrite::cli
