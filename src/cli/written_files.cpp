#include "cli/written_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/error.hpp"
#include "ferrite/io/glob.hpp"

namespace ferrite::cli {
namespace {

namespace fs = std::filesystem;

/// One value that was given.
struct Given {
  std::string option, value;
  bool is_written;
};

bool is_written(const CLI::Option& option) {
  constexpr std::array<std::string_view, 7> names{"--out",  "--html",   "--page", "--save-fitted",
                                                  "--json", "--export", "--to"};
  return option.get_items_expected_max() > 0 && std::ranges::find(names, option.get_name()) != names.end();
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path whole = fs::weakly_canonical(a, error);
  return !error && whole == fs::weakly_canonical(b, error) && !error;
}

/// Whether an option's values are words that may happen to be names of files too.
bool names_no_file(const Given& given) {
  constexpr std::array<std::string_view, 11> names{"--target",  "--drop", "--categories", "--missing",
                                                   "--backend", "--task", "--precision",  "--dtype",
                                                   "--prompt",  "--stop", "--optimizer"};
  return std::ranges::find(names, given.option) != names.end();
}

/// Whether an empty value means something, or is refused by the command in its own words.
bool may_be_empty(const Given& given) {
  constexpr std::array<std::string_view, 9> names{"--prompt", "--stop",   "--from",       "--missing", "text",
                                                  "ids",      "--target", "--categories", "--drop"};
  return std::ranges::find(names, given.option) != names.end();
}

/// The files that a value may name, as itself, as a pattern or as FILE:TARGET.
std::vector<fs::path> files_of(const Given& given) {
  if (given.is_written) return {given.value};
  if (names_no_file(given)) return {};
  std::vector<fs::path> files;
  try {
    files = matching_files(given.value);
  } catch (const std::exception&) {  // the command itself says that nothing matches
  }
  if (const auto colon = given.value.rfind(':'); colon != std::string::npos)
    files.push_back(given.value.substr(0, colon));
  std::erase_if(files, [](const fs::path& file) {
    std::error_code error;
    return !fs::is_regular_file(file, error);
  });
  return files;
}

}  // namespace

void check_written_files(const CLI::App& app) {
  std::string command;
  std::vector<Given> all;
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
    command += (command.empty() ? "" : " ") + chosen->get_name();
    for (const CLI::Option* option : chosen->get_options())
      for (const std::string& value : option->results())
        all.push_back({option->get_name(), value, is_written(*option)});
  }
  for (const Given& given : all)
    if (given.value.empty() && !may_be_empty(given))
      throw ValueError(fmt::format("[{}] {} is {}: a variable of the shell may not be set", command,
                                   given.option, given.is_written ? "an empty path" : "empty"));
  for (const Given& written : all) {
    if (!written.is_written) continue;
    for (const Given& other : all)
      if (&other != &written && std::ranges::any_of(files_of(other), [&](const fs::path& file) {
            return is_same_file(file, written.value);
          }))
        throw ValueError(fmt::format("[{}] {} and {} name the same file: give each its own", command,
                                     other.option, written.option));
  }
}

}  // namespace ferrite::cli
