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
  add_reading_options(command, o.table);
  return {command.add_option("--target", o.target, "The column to predict"),
          add_checked(command, "--task", o.task,
                      "What the target has; auto: texts and few different integers are classes",
                      CLI::IsMember({"auto", "classification", "regression"})),
          add_list_option(command, "--drop", o.encoder.drop, "Columns not to use; '\"a,b\"' is one"),
          add_list_option(command, "--categories", o.encoder.categories,
                          "Columns of numbers that are categories"),
          command.add_flag("--day-first", o.encoder.day_first,
                           "Where dates could be read both ways, as 03/04/2024, the day comes first")};
}

}  // namespace ferrite::cli::pfn
