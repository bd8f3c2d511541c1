#include "cli/bench/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ferrite::cli::bench {

namespace {

/// "12.3 us  4.2x  120 GB/s", and a mark if the error is too large.
std::string cell(const ResultRow& row, const std::string& column) {
  const auto found = row.figures.find(column);
  if (found != row.figures.end() && found->second.failed) return "failed !";
  if (found == row.figures.end() || !found->second.times) return "-";
  std::string text = fmt::format("{:>7}", time_text(found->second.times->seconds));
  const std::optional<double> faster = row.speed_up(column, "cpu");
  if (faster && column != "cpu") text += fmt::format(" {:>8}", fmt::format("{:.3g}x", *faster));
  if (const auto rate = row.rate(column)) text += fmt::format(" {:>12}", rate_text(*rate, row.bound));
  return found->second.is_over ? text + " !" : text;
}

std::string marked_rows(const Report& report) {
  std::string text;
  for (const ResultRow& row : report.rows)
    for (const Column& column : report.columns)
      if (const auto found = row.figures.find(column.name);
          found != row.figures.end() && found->second.is_wrong()) {
        const Figure& figure = found->second;
        text += fmt::format("! {} {}: ", row.name(), column.name);
        text += figure.failed ? figure.note + "\n"
                              : fmt::format("error {:.1e}, {}\n", figure.error.value_or(0), figure.note);
      }
  return text;
}

std::string means(const Report& report) {
  std::string text;
  if (!report.has_column("cpu")) return text;
  for (const Column& column : report.columns) {
    std::vector<double> ratios;
    for (const ResultRow& row : report.rows)
      if (const auto faster = row.speed_up(column.name, "cpu")) ratios.push_back(*faster);
    if (column.name != "cpu" && !ratios.empty())
      text += fmt::format("{}: {:.3g}x the speed of cpu, geometric mean of {} rows\n", column.name,
                          geometric_mean(ratios), ratios.size());
  }
  return text;
}

}  // namespace

std::string summary(const Report& report) {
  std::vector<std::vector<std::string>> table{{"row"}};
  for (const Column& column : report.columns) table[0].push_back(column.name);
  for (const ResultRow& row : report.rows) {
    table.push_back({row.name()});
    for (const Column& column : report.columns) table.back().push_back(cell(row, column.name));
  }
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& line : table)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : table) {
    std::string cells;
    for (std::size_t i = 0; i < line.size(); ++i) cells += fmt::format("{:<{}}  ", line[i], widths[i]);
    text += cells.substr(0, cells.find_last_not_of(' ') + 1) + "\n";
  }
  text += "\n" + means(report) + marked_rows(report);
  for (const std::string& note : report.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace ferrite::cli::bench
