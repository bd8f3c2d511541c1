// The options that choose a prior.
#include "cli/prior_options.hpp"
#include "cli/backend_option.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/to_number.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cli {

using namespace priors;

namespace {

/// "20" or "2:20".
IntRange parse_range(const char* option, const std::string& text) {
  const auto number = [&](std::string_view part) {
    const auto value = to_number<int>(part);
    if (!value)
      throw ValueError(fmt::format("[priors] {} {}: needs a number, or two like 2:20", option, text));
    return *value;
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {number(text), number(text)};
  return {number(std::string_view(text).substr(0, colon)), number(std::string_view(text).substr(colon + 1))};
}

}  // namespace

void PriorOptions::add_to(CLI::App& command) {
  command.add_option("--preset", preset, "A named config: default, or realistic (fitted to real tables)");
  command.add_option("--family", family, "formula, graph, mlp_scm, tree_scm, gp or mixture");
  command
      .add_option("--config", config,
                  "JSON file with any keys of the config, on top of \"preset\" if it has one")
      ->excludes("--preset");
  command.add_option("--datasets", datasets, "How many")->capture_default_str();
  command.add_option("--first", first, "Number of the first one")->capture_default_str();
  command.add_option("--rows", rows, "Rows per dataset: 1024, or 64:1024");
  command.add_option("--features", features, "Features per dataset: 8, or 2:20");
  command.add_option("--classes", classes, "Classes: 2, or 2:10");
  command.add_option("--task", task, "What y is")->check(CLI::IsMember({"classification", "regression"}));
  add_checked(command, "--seed", seed, "Another seed, other datasets", whole_number);
  add_backend_option(&command, backend, "Where they are made");
}

Config PriorOptions::prior() const {
  Config prior =
      !config.empty() ? Config::from_file(config) : Config::preset(preset.empty() ? "default" : preset);
  if (!family.empty()) {
    using Json = nlohmann::ordered_json;
    const Json json{{"family", family}};
    prior.family = Config::from_json(json.dump(-1, ' ', true, Json::error_handler_t::replace)).family;
  }
  if (!task.empty()) prior.task = task == "regression" ? Task::regression : Task::classification;
  if (!rows.empty()) prior.rows = parse_range("--rows", rows);
  if (!features.empty()) prior.features = parse_range("--features", features);
  if (!classes.empty()) prior.post.classes = parse_range("--classes", classes);
  prior.check();
  return prior;
}

}  // namespace ferrite::cli
