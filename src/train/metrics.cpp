// metrics.jsonl: lines of numbers.
#include "ferrite/train/metrics.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "train/metrics_page.hpp"

namespace ferrite::train {
namespace fs = std::filesystem;

namespace {

double unix_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) / 1000;
}

std::string line_of(const MetricsRow& row) {
  nlohmann::ordered_json json{{"step", row.step}};
  for (const auto& [name, value] : row.values) {
    if (name == "memory_bytes")
      json[name] = static_cast<std::int64_t>(value);
    else
      json[name] = value;
  }
  return json.dump() + "\n";
}

/// The rows up to `last`. What is not a row, such as a line that a crash cut off, is left out.
std::vector<MetricsRow> read_rows(const fs::path& path, std::int64_t last) {
  std::vector<MetricsRow> rows;
  std::ifstream in(path);
  for (std::string text; std::getline(in, text);) {
    const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    MetricsRow row{json["step"].get<std::int64_t>(), {}};
    if (row.step > last) continue;
    for (const auto& [name, value] : json.items())
      if (name != "step" && value.is_number()) row.values.emplace_back(name, value.get<double>());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

RunMetrics::RunMetrics(fs::path folder, MetricsConfig config)
    : folder_(std::move(folder)), config_(std::move(config)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw IoError(fmt::format("[metrics] {}: {}", folder_.string(), error.message()));
}

void RunMetrics::on_resume(std::int64_t step) {
  lines_ = {};
  const fs::path path = folder_ / "metrics.jsonl";
  rows_ = read_rows(path, step);
  AtomicFile kept(path);
  for (const MetricsRow& row : rows_) kept.write(line_of(row));
  kept.commit();
  lines_.open(path, std::ios::app);
}

void RunMetrics::on_progress(const Progress& p) {
  steps_ = p.steps;
  MetricsRow row{p.step, {{"loss", p.loss}, {"learning_rate", p.lr}}};
  if (p.gradient_norm != 0) row.values.emplace_back("gradient_norm", p.gradient_norm);
  if (p.loss_scale != 0) row.values.emplace_back("loss_scale", p.loss_scale);
  if (config_.tokens_per_sample > 0)
    row.values.emplace_back("tokens_per_second",
                            p.samples_per_second * static_cast<double>(config_.tokens_per_sample));
  else
    row.values.emplace_back("samples_per_second", p.samples_per_second);
  row.values.emplace_back("memory_bytes", static_cast<double>(p.memory_bytes));
  add(std::move(row));
  if (Clock::now() - page_written_ >= std::chrono::seconds(1)) write_page(true);
}

void RunMetrics::on_evaluation(std::int64_t step, const Evaluation& evaluation) {
  MetricsRow row{step, {}};
  for (const auto& [name, value] : evaluation.values) row.values.emplace_back("validation_" + name, value);
  add(std::move(row));
}

void RunMetrics::on_finish() { write_page(false); }

void RunMetrics::add(MetricsRow row) {
  const fs::path path = folder_ / "metrics.jsonl";
  if (!lines_.is_open()) lines_.open(path, std::ios::trunc);
  row.values.emplace_back("time", unix_time());
  lines_ << line_of(row) << std::flush;
  if (!lines_) throw IoError(fmt::format("[metrics] {}: cannot be written", path.string()));
  rows_.push_back(std::move(row));
}

void RunMetrics::write_page(bool running) {
  write_text(folder_ / "metrics.html", metrics_page(rows_, config_, steps_, running));
  page_written_ = Clock::now();
}

}  // namespace ferrite::train
