// Plots of a run's metrics over its steps.
#include "train/metrics_page.hpp"

#include <algorithm>
#include <cmath>

#include "io/page_style.hpp"
#include "io/svg.hpp"

namespace ferrite::train {

namespace {

using svg::line;
using svg::Scale;
using svg::scale_of;
using svg::short_text;
using svg::words;

constexpr double width = 480, height = 260, left = 58, right = 14, top = 30, bottom = 24;
constexpr const char* colours[] = {"c1", "c3"};
constexpr std::size_t most_points = 500;  // more would not be seen

struct Point {
  double step, value;
};
using Series = std::vector<Point>;

/// A long series as means over neighbours.
Series thinned(const Series& all) {
  const std::size_t group = (all.size() + most_points - 1) / most_points;
  if (group <= 1) return all;
  Series means;
  for (std::size_t begin = 0; begin < all.size(); begin += group) {
    const std::size_t end = std::min(begin + group, all.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += all[i].value;
    means.push_back({all[end - 1].step, sum / static_cast<double>(end - begin)});
  }
  return means;
}

Series series(std::span<const MetricsRow> rows, std::string_view name) {
  Series all;
  for (const MetricsRow& row : rows)
    for (const auto& [key, value] : row.values)
      if (key == name && std::isfinite(value)) all.push_back({static_cast<double>(row.step), value});
  return thinned(all);
}

enum class Axis : std::uint8_t { fitted, from_zero };

std::string plot(const std::string& title, const std::vector<std::pair<std::string, Series>>& lines,
                 Axis axis, double unit = 1) {
  std::vector<double> steps, values;
  for (const auto& [name, points] : lines) {
    for (const Point& point : points) {
      steps.push_back(point.step);
      values.push_back(point.value / unit);
    }
  }
  if (values.empty()) return "";
  if (axis == Axis::from_zero) values.push_back(0);
  const Scale x = scale_of(steps, left, width - right), y = scale_of(values, height - bottom, top);
  std::string body = words(0, 14, title, "head", "start");
  for (const double tick : y.ticks()) {
    body += line(left, y.at(tick), width - right, y.at(tick), "grid");
    body += words(left - 6, y.at(tick) + 4, short_text(tick), "faint", "end");
  }
  for (const double tick : x.ticks())
    if (tick == std::floor(tick))
      body += words(x.at(tick), height - 6, fmt::format("{:.0f}", tick), "faint", "middle");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [name, points] = lines[i];
    if (points.empty()) continue;
    std::string path, dots;
    for (const Point& point : points) {
      const double px = x.at(point.step), py = y.at(point.value / unit);
      path += fmt::format("{:.1f},{:.1f} ", px, py);
      if (points.size() <= 60)
        dots +=
            fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.5"><title>step {:.0f}: {}</title></circle>)",
                        px, py, point.step, short_text(point.value / unit));
    }
    body += fmt::format(R"(<g class="{}"><polyline points="{}"/>{}</g>)", colours[i], path, dots);
    if (lines.size() > 1)
      body +=
          words(width - right - 90 * static_cast<double>(lines.size() - 1 - i), 14, name, colours[i], "end");
  }
  return svg::image(width, height, body) + "\n";
}

std::string facts(std::span<const MetricsRow> rows, std::int64_t steps, bool running) {
  if (rows.empty()) return "Nothing was reported.";
  const Series loss = series(rows, "loss");
  return fmt::format("Step {}{}{}{}", rows.back().step, steps > 0 ? fmt::format(" of {}", steps) : "",
                     loss.empty() ? "" : fmt::format(", loss {:.4f}", loss.back().value),
                     running ? "; the run goes on, and this page with it." : ".");
}

constexpr std::string_view validation = "validation_";

/// The values of evaluations beside the loss, in the order they first come in.
std::vector<std::string> other_evaluations(std::span<const MetricsRow> rows) {
  std::vector<std::string> names;
  for (const MetricsRow& row : rows)
    for (const auto& [name, value] : row.values)
      if (name.starts_with(validation) && name != "validation_loss" &&
          std::ranges::find(names, name) == names.end())
        names.push_back(name);
  return names;
}

}  // namespace

std::string metrics_page(std::span<const MetricsRow> rows, const MetricsConfig& config, std::int64_t steps,
                         bool running) {
  const auto one = [&](const char* name) {
    return std::vector<std::pair<std::string, Series>>{{"", series(rows, name)}};
  };
  const char* const refresh = running ? "<meta http-equiv=\"refresh\" content=\"5\">\n" : "";
  std::string plots;
  plots += plot("Loss", {{"training", series(rows, "loss")}, {"validation", series(rows, "validation_loss")}},
                Axis::fitted);
  plots += plot("Gradient norm", one("gradient_norm"), Axis::from_zero);
  plots += plot("Loss scale", one("loss_scale"), Axis::from_zero);
  plots += plot("Tokens per second", one("tokens_per_second"), Axis::from_zero);
  plots += plot("Samples per second", one("samples_per_second"), Axis::from_zero);
  plots += plot("Memory, GiB", one("memory_bytes"), Axis::from_zero, 1024.0 * 1024 * 1024);
  plots += plot("Learning rate", one("learning_rate"), Axis::from_zero);
  for (const std::string& name : other_evaluations(rows))
    plots += plot("Validation: " + name.substr(validation.size()), one(name.c_str()), Axis::fitted);
  return svg::page(config.title, facts(rows, steps, running), R"(<div class="grid">)" + plots + "</div>\n",
                   refresh);
}

}  // namespace ferrite::train
