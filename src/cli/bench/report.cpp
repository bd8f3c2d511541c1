#include "cli/bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

namespace ferrite::cli::bench {

using Json = nlohmann::ordered_json;

std::optional<double> ResultRow::seconds(const std::string& column) const {
  const auto found = figures.find(column);
  if (found == figures.end() || !found->second.times) return {};
  return found->second.times->seconds;
}

std::optional<double> ResultRow::rate(const std::string& column) const {
  const std::optional<double> time = seconds(column);
  const double amount = bound == Bound::flops ? flops : bytes;
  if (!time || *time <= 0 || amount <= 0) return {};
  return amount / *time;
}

std::optional<double> ResultRow::error(const std::string& column) const {
  const auto found = figures.find(column);
  return found == figures.end() ? std::nullopt : found->second.error;
}

std::optional<double> ResultRow::speed_up(const std::string& column, const std::string& base) const {
  const std::optional<double> time = seconds(column), other = seconds(base);
  if (!time || !other || *time <= 0) return {};
  return *other / *time;
}

bool Report::has_column(const std::string& name) const {
  return std::any_of(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
}

bool Report::is_any_wrong() const {
  return std::any_of(rows.begin(), rows.end(), [&](const ResultRow& row) {
    return std::any_of(columns.begin(), columns.end(), [&](const Column& column) {
      const auto found = row.figures.find(column.name);
      return !column.is_peer && found != row.figures.end() && found->second.is_wrong();
    });
  });
}

namespace {

Json to_json(const Figure& figure) {
  Json json = Json::object();
  if (figure.times) {
    json["seconds"] = figure.times->seconds;
    json["min_seconds"] = figure.times->min_seconds;
    json["iterations"] = figure.times->iterations;
    json["calls"] = figure.times->calls;
  }
  // JSON has no NaN: null says that there was an error to report and that it is not a number.
  if (figure.error) json["error"] = std::isfinite(*figure.error) ? Json(*figure.error) : Json();
  if (figure.is_over) json["over"] = true;
  if (figure.failed) json["failed"] = true;
  if (!figure.note.empty()) json["note"] = figure.note;
  return json;
}

/// `place` is the file, row and column, for errors.
Figure figure_from(const Json& json, const std::string& place) {
  Figure figure;
  if (json.contains("seconds"))
    figure.times = Times{json["seconds"], json.value("min_seconds", json["seconds"].get<double>()),
                         json.value("iterations", 1), json.value("calls", 1)};
  if (figure.times && !(figure.times->seconds > 0 && figure.times->min_seconds > 0))
    throw ParseError(
        fmt::format("[bench] {}: the time is {} s (min {} s), but must be above 0: measure again", place,
                    figure.times->seconds, figure.times->min_seconds));
  if (json.contains("error"))
    figure.error =
        json["error"].is_null() ? std::numeric_limits<double>::quiet_NaN() : json["error"].get<double>();
  figure.is_over = json.value("over", false);
  figure.failed = json.value("failed", false);
  figure.note = json.value("note", "");
  return figure;
}

ResultRow row_from(const Json& json, const std::string& path) {
  ResultRow row{json.at("op"),
                json.at("dtype"),
                json.at("size"),
                json.at("bound") == "flops" ? Bound::flops : Bound::bytes,
                json.value("flops", 0.0),
                json.value("bytes", 0.0),
                {}};
  for (const auto& [column, figure] : json.at("results").items())
    row.figures[column] = figure_from(figure, fmt::format("{}, {} on {}", path, row.name(), column));
  return row;
}

Report report_from(const Json& json, const std::string& path) {
  Report report;
  report.version = json.at("ferrite").at("version");
  report.commit = json.at("ferrite").at("commit");
  report.date = json.at("date");
  report.hardware = json.at("hardware");
  report.settings = json.at("settings");
  for (const Json& column : json.at("columns"))
    report.columns.push_back({column.at("name"), column.at("what"), column.at("kind") == "peer"});
  for (const Json& row : json.at("rows")) report.rows.push_back(row_from(row, path));
  for (const Json& note : json.at("notes")) report.notes.push_back(note);
  return report;
}

}  // namespace

Json to_json(const Report& report) {
  Json json{{"schema_version", schema_version},
            {"ferrite", {{"version", report.version}, {"commit", report.commit}}},
            {"date", report.date},
            {"hardware", report.hardware},
            {"settings", report.settings},
            {"columns", Json::array()},
            {"rows", Json::array()},
            {"notes", report.notes}};
  for (const Column& column : report.columns)
    json["columns"].push_back(
        {{"name", column.name}, {"kind", column.is_peer ? "peer" : "backend"}, {"what", column.what}});
  for (const ResultRow& row : report.rows) {
    Json results = Json::object();
    for (const Column& column : report.columns)
      if (const auto found = row.figures.find(column.name); found != row.figures.end())
        results[column.name] = to_json(found->second);
    json["rows"].push_back({{"name", row.name()},
                            {"op", row.op},
                            {"dtype", row.dtype},
                            {"size", row.size},
                            {"bound", row.bound == Bound::flops ? "flops" : "bytes"},
                            {"flops", row.flops},
                            {"bytes", row.bytes},
                            {"results", results}});
  }
  return json;
}

Report read_report(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw IoError(fmt::format("[bench] cannot read {}; `ferrite bench --out` writes such a file", path));
  try {
    const Json json = Json::parse(file);
    const int version = json.at("schema_version");
    if (version != schema_version)
      throw ParseError(fmt::format("[bench] {} has schema_version {}, this ferrite reads {}: measure again",
                                   path, version, schema_version));
    return report_from(json, path);
  } catch (const nlohmann::json::exception& e) {
    throw ParseError(fmt::format("[bench] {} is not a file of `ferrite bench --out`: {}", path, e.what()));
  }
}

double geometric_mean(const std::vector<double>& values) {
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return values.empty() ? 1 : std::exp(logarithms / static_cast<double>(values.size()));
}

namespace {

/// Three digits and the unit that keeps them short; units are a factor 1000 apart.
std::string scaled(double value, std::initializer_list<const char*> units) {
  const char* chosen = *units.begin();
  for (const char* unit : units) {
    chosen = unit;
    if (value < 999.5) break;
    if (unit != *(units.end() - 1)) value /= 1000;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, chosen);
}

}  // namespace

std::string time_text(double seconds) { return scaled(seconds * 1e9, {"ns", "us", "ms", "s"}); }

std::string rate_text(double rate, Bound bound) {
  return bound == Bound::flops ? scaled(rate / 1e6, {"MFLOP/s", "GFLOP/s", "TFLOP/s"})
                               : scaled(rate / 1e6, {"MB/s", "GB/s", "TB/s"});
}

}  // namespace ferrite::cli::bench
