// Options that are the same for every subcommand that reads tables.
#pragma once

#include <map>

#include "cli/command.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/io/csv.hpp"
#include "ferrite/io/csv_scanner.hpp"
#include "ferrite/models/quantile_tokenizer/table.hpp"

namespace ferrite::cli {

/// Adds --delimiter, which is one character, or \t for a tab, as shells do not make one easily. `value` must
/// outlive the command.
inline CLI::Option* add_delimiter_option(CLI::App& command, char& value) {
  const auto read = [&value](const std::string& text) {
    if (text.size() != 1 && text != "\\t")
      throw CLI::ValidationError("--delimiter", "'" + text + "': give one character, or \\t for a tab");
    value = text == "\\t" ? '\t' : text[0];
  };
  return command.add_option_function<std::string>(
      "--delimiter", read,
      "Between the fields of a CSV file, \\t for a tab; default: a tab in .tsv files, else ,");
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

/// Adds an option for a list with commas in between. Quotes protect commas, as in a CSV file: '"a,b",c' are
/// two. `values` must outlive the command.
inline CLI::Option* add_list_option(CLI::App& command, const std::string& name,
                                    std::vector<std::string>& values, const std::string& help) {
  const auto read = [&values, name](const std::vector<std::string>& given) {
    values.clear();
    for (const std::string& text : given) try {
        CsvScanner scanner(name);
        scanner.feed(text);
        scanner.finish();
        CsvRow row;
        while (scanner.next_row(row))
          for (const CsvField& field : row) values.push_back(field.text());
      } catch (const Error&) {
        throw CLI::ValidationError(name,
                                   "'" + text + "': write a quote in a name as two, and quotes around it");
      }
  };
  return as_texts(command.add_option_function<std::vector<std::string>>(name, read, help));
}

/// Adds --missing, --header, --delimiter and --rename-duplicates. `config` must outlive the command.
inline void add_reading_options(CLI::App& command, quantile_tokenizer::TableConfig& config) {
  add_list_option(command, "--missing", config.missing, "More texts or numbers that mean a missing value");
  add_header_option(command, config.header);
  add_delimiter_option(command, config.delimiter);
  command.add_flag("--rename-duplicates", config.rename_duplicates,
                   "Columns of one name in a CSV file become name, name.1, name.2, ...");
}

}  // namespace ferrite::cli
