#include "cli/bench/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/command.hpp"

namespace ferrite::cli {

namespace bench {

namespace {

std::map<std::pair<std::string, std::string>, double> seconds_of(const Report& report, By by) {
  std::map<std::pair<std::string, std::string>, double> seconds;
  for (const ResultRow& row : report.rows)
    for (const auto& [column, figure] : row.figures)
      if (figure.times)
        seconds[{row.name(), column}] = by == By::median ? figure.times->seconds : figure.times->min_seconds;
  return seconds;
}

/// A value of the hardware or the settings, as text; empty where a file does not have it.
std::string text_at(const nlohmann::ordered_json& json, const char* path) {
  const nlohmann::ordered_json::json_pointer pointer(path);
  return json.contains(pointer) ? json.at(pointer).dump() : "";
}

std::string gpu_names(const Report& report) {
  std::vector<std::string> names;
  if (report.hardware.contains("gpus"))
    for (const auto& gpu : report.hardware["gpus"]) names.push_back(gpu.value("name", "unknown"));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> differences(const Report& before, const Report& after) {
  std::vector<std::string> found;
  const auto check = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      found.push_back(
          fmt::format("{}: {} before, {} after", what, a.empty() ? "none" : a, b.empty() ? "none" : b));
  };
  check("different CPU", text_at(before.hardware, "/cpu/name"), text_at(after.hardware, "/cpu/name"));
  check("different number of cores", text_at(before.hardware, "/cpu/cores"),
        text_at(after.hardware, "/cpu/cores"));
  check("different number of threads", text_at(before.settings, "/threads"),
        text_at(after.settings, "/threads"));
  check("different GPU", gpu_names(before), gpu_names(after));
  for (const Column& column : before.columns)
    for (const Column& other : after.columns)
      if (column.name == other.name) check(("different " + column.name).c_str(), column.what, other.what);
  return found;
}

}  // namespace

double RunComparison::mean_ratio() const {
  std::vector<double> ratios;
  for (const Change& change : changes) ratios.push_back(change.ratio());
  return geometric_mean(ratios);
}

std::size_t RunComparison::count_below(double limit) const {
  return static_cast<std::size_t>(
      std::count_if(changes.begin(), changes.end(), [&](const Change& c) { return c.ratio() < limit; }));
}

RunComparison compare(const Report& before, const Report& after, By by) {
  const auto old_seconds = seconds_of(before, by), new_seconds = seconds_of(after, by);
  RunComparison result;
  for (const auto& [key, seconds] : old_seconds) {
    const auto found = new_seconds.find(key);
    if (found == new_seconds.end())
      result.only_before.push_back(key.first + " " + key.second);
    else
      result.changes.push_back({key.first, key.second, seconds, found->second});
  }
  for (const ResultRow& row : after.rows)
    for (const auto& [column, figure] : row.figures)
      if (figure.is_wrong() && old_seconds.contains({row.name(), column}))
        result.wrong_after.push_back(fmt::format("{} {}: {}", row.name(), column, figure.note));
  for (const auto& [key, seconds] : new_seconds)
    if (!old_seconds.contains(key)) result.only_after.push_back(key.first + " " + key.second);
  std::stable_sort(result.changes.begin(), result.changes.end(),
                   [](const Change& a, const Change& b) { return a.ratio() < b.ratio(); });
  result.warnings = differences(before, after);
  return result;
}

std::string to_text(const RunComparison& comparison, double limit) {
  std::string text;
  for (const std::string& warning : comparison.warnings) text += "warning: " + warning + "\n";
  text += fmt::format("{:<34}{:<16}{:>10}{:>10}{:>8}\n", "row", "backend", "before", "after", "ratio");
  for (const Change& c : comparison.changes)
    text += fmt::format("{:<34}{:<16}{:>10}{:>10}{:>8.3f}{}\n", c.row, c.column, time_text(c.before),
                        time_text(c.after), c.ratio(), c.ratio() < limit ? "  slower" : "");
  for (const std::string& name : comparison.wrong_after) text += "wrong after: " + name + "\n";
  for (const std::string& name : comparison.only_before) text += "only before: " + name + "\n";
  for (const std::string& name : comparison.only_after) text += "only after: " + name + "\n";
  std::map<std::string, std::vector<double>> by_column;
  for (const Change& c : comparison.changes) by_column[c.column].push_back(c.ratio());
  text += "\nThe ratio is the time before over the time after: above 1 a row has become faster.\n";
  for (const auto& [column, ratios] : by_column)
    text +=
        fmt::format("{}: geometric mean {:.3f} of {} rows\n", column, geometric_mean(ratios), ratios.size());
  return text + fmt::format("all: geometric mean {:.3f}, {} of {} below {}\n", comparison.mean_ratio(),
                            comparison.count_below(limit), comparison.changes.size(), limit);
}

}  // namespace bench

namespace {

struct CompareOptions {
  std::string before, after, by = "median";
  double fail_below = 0.95;
  bool allow_missing = false;
};

int run_compare(const CompareOptions& options) {
  const bench::RunComparison comparison =
      bench::compare(bench::read_report(options.before), bench::read_report(options.after),
                     options.by == "min" ? bench::By::least : bench::By::median);
  const bool is_complete = comparison.only_before.empty() || options.allow_missing;
  if (comparison.changes.empty() && comparison.wrong_after.empty() && is_complete)
    throw ValueError(
        fmt::format("[bench compare] {} and {} have no time of a row and backend in common: give "
                    "two runs of the same rows",
                    options.before, options.after));
  fmt::print("{}", bench::to_text(comparison, options.fail_below));
  if (!is_complete)
    fmt::print("{} times are missing after: --allow-missing passes without them\n",
               comparison.only_before.size());
  const bool passes =
      comparison.count_below(options.fail_below) == 0 && comparison.wrong_after.empty() && is_complete;
  return passes ? success : difference;
}

}  // namespace

void add_bench_compare(CLI::App& bench, Action& action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = bench.add_subcommand("compare", "Compare two files of --out, worst rows first");
  command->add_option("before", options->before, "The file of the earlier run")->required();
  command->add_option("after", options->after, "The file of the later run")->required();
  add_checked(*command, "--fail-below", options->fail_below, "Exit with 1 if a row's ratio is below this",
              nonnegative_number);
  add_checked(*command, "--by", options->by, "The time that counts: median, or min, which noise moves less",
              CLI::IsMember({"median", "min"}));
  command->add_flag("--allow-missing", options->allow_missing,
                    "Pass without rows and backends that only the earlier run has");
  command->footer(
      "Examples:\n"
      "  ferrite bench compare old.json new.json\n"
      "  ferrite bench compare old.json new.json --fail-below 0.9 --by min\n"
      "  ferrite bench compare all.json only_cpu.json --allow-missing\n"
      "The exit code is 1 if a row has become slower than allowed, fails, is wrong, or is missing.");
  command->callback([&action, options] { action = [options] { return run_compare(*options); }; });
}

}  // namespace ferrite::cli
