#include "cli/pfn/table_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/csv_options.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cli::pfn {

using ferrite::pfn::Task;

ferrite::pfn::EncoderConfig TableOptions::encoder_config(std::string_view command) const {
  const auto check = [&](const char* option, const std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), target) != names.end())
      throw ValueError(fmt::format("[{}] {} {}: is the target; name other columns", command, option, target));
  };
  check("--drop", encoder.drop);
  check("--categories", encoder.categories);
  if (task == "auto") return encoder;
  return encoder.with_task(task == "regression" ? Task::regression : Task::classification);
}

std::vector<CLI::Option*> add_table_options(CLI::App& command, TableOptions& o) {
  command.add_option("--missing", o.table.missing, "More texts or numbers that mean a missing value")
      ->delimiter(',');
  add_header_option(command, o.table.header);
  add_delimiter_option(command, o.table.delimiter);
  command.add_flag("--rename-duplicates", o.table.rename_duplicates,
                   "Columns of one name in a CSV file become name, name.1, name.2, ...");
  return {command.add_option("--target", o.target, "The column to predict"),
          command
              .add_option("--task", o.task,
                          "What the target has; auto: texts and few different integers are classes")
              ->check(CLI::IsMember({"auto", "classification", "regression"}))
              ->capture_default_str(),
          command.add_option("--drop", o.encoder.drop, "Columns not to use")->delimiter(','),
          command.add_option("--categories", o.encoder.categories, "Columns of numbers that are categories")
              ->delimiter(',')};
}

}  // namespace ferrite::cli::pfn
