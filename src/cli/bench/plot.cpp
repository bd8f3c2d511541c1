#include "cli/bench/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ferrite::cli::bench {

namespace {

using svg::line;
using svg::words;

constexpr double name_width = 200, plot_width = 700, right_margin = 80, line_height = 18, top = 36;
constexpr double small_width = 320, small_height = 190, small_left = 44, small_right = 12;

std::string dot(double x, double y, std::size_t column, const std::string& tip) {
  return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4.5" class="c{}"><title>{}</title></circle>)", x,
                     y, column, escaped(tip));
}

std::string kind_of(const Mark& mark) { return mark.column ? fmt::format("mark c{}", *mark.column) : "mark"; }

std::vector<double> positive(const std::vector<Dots>& lines, const std::vector<Mark>& marks) {
  std::vector<double> values;
  for (const Dots& dots : lines)
    for (const auto& value : dots.values)
      if (value && *value > 0) values.push_back(*value);
  if (!values.empty())
    for (const Mark& mark : marks) values.push_back(mark.value);
  return values;
}

}  // namespace

LogScale::LogScale(const std::vector<double>& values, double from, double to) : from_(from), to_(to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  low_ = *least / 1.15;
  high_ = *most * 1.15;
}

double LogScale::at(double value) const {
  return from_ + (to_ - from_) * std::log(value / low_) / std::log(high_ / low_);
}

std::vector<double> LogScale::ticks() const {
  const double decades = std::log10(high_ / low_);
  std::vector<double> steps{1};
  if (decades <= 2.5) steps = {1, 2, 5};
  if (decades <= 1) steps = {1, 1.5, 2, 3, 4, 5, 7};
  std::vector<double> found;
  for (int power = static_cast<int>(std::floor(std::log10(low_))); std::pow(10, power) <= high_; ++power)
    for (const double step : steps)
      if (const double tick = step * std::pow(10, power); low_ <= tick && tick <= high_)
        found.push_back(tick);
  return found;
}

std::string dot_plot(const std::vector<Dots>& lines, const std::vector<std::string>& columns,
                     const std::string& unit, const std::vector<Mark>& marks) {
  const std::vector<double> values = positive(lines, marks);
  if (values.empty()) return "<p>Nothing was measured.</p>";
  const LogScale scale(values, name_width, name_width + plot_width);
  std::string body, family;
  double y = top;
  for (const Dots& dots : lines) {
    const std::size_t slash = dots.name.find('/');
    const std::string head = dots.name.substr(0, slash);
    if (head != family) body += words(0, y + 4, family = head, "head", "start");
    if (slash != std::string::npos)
      body += words(name_width - 10, y + 4, dots.name.substr(slash + 1), "faint", "end");
    body += line(name_width, y, name_width + plot_width, y, "grid");
    for (std::size_t i = dots.values.size(); i-- > 0;)  // the first column last, on top
      if (const auto& value = dots.values[i]; value && *value > 0)
        body += dot(scale.at(*value), y, i,
                    fmt::format("{}, {}: {} {}", dots.name, columns[i], short_text(*value), unit));
    y += line_height;
  }
  std::string axis = words(0, 14, unit, "faint", "start");
  for (const double tick : scale.ticks()) {
    axis += line(scale.at(tick), 20, scale.at(tick), y - 8, "grid");
    axis += words(scale.at(tick), 14, short_text(tick), "faint", "middle");
  }
  const double bottom = y;
  for (const Mark& mark : marks) {  // their labels stand below each other: the lines may be close
    axis += line(scale.at(mark.value), 20, scale.at(mark.value), bottom, kind_of(mark));
    axis += fmt::format(R"(<g class="{}">{}</g>)", kind_of(mark),
                        words(scale.at(mark.value), y += 13, mark.label, "", "middle"));
  }
  return R"(<div class="scroll">)" + svg::image(name_width + plot_width + right_margin, y + 12, axis + body) +
         "</div>";
}

std::string line_plot(const std::string& title, const std::vector<std::string>& labels,
                      const std::vector<Dots>& by_label, const std::vector<std::string>& columns,
                      const std::string& unit, const std::vector<Mark>& marks) {
  const std::vector<double> values = positive(by_label, marks);
  if (values.empty() || labels.size() < 2) return "";
  const LogScale scale(values, small_height - 24, 30);
  const double right = small_width - small_right - 10,
               step = (right - small_left - 10) / static_cast<double>(labels.size() - 1);
  const auto x = [&](std::size_t i) { return small_left + 10 + step * static_cast<double>(i); };
  std::string body = words(0, 14, title, "head", "start") + words(small_width, 14, unit, "faint", "end");
  for (const double tick : scale.ticks()) {
    body += line(small_left, scale.at(tick), small_width - small_right, scale.at(tick), "grid");
    body += words(small_left - 5, scale.at(tick) + 4, short_text(tick), "faint", "end");
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    body += words(x(i), small_height - 6, labels[i], "faint", "middle");
  for (const Mark& mark : marks)
    body += line(small_left, scale.at(mark.value), small_width - small_right, scale.at(mark.value),
                 kind_of(mark));
  for (std::size_t column = columns.size(); column-- > 0;) {
    std::string path, dots;
    for (std::size_t i = 0; i < by_label.size(); ++i) {
      const auto& value = by_label[i].values[column];
      if (!value || *value <= 0) continue;
      path += fmt::format("{:.1f},{:.1f} ", x(i), scale.at(*value));
      dots +=
          dot(x(i), scale.at(*value), column,
              fmt::format("{} {}, {}: {} {}", title, labels[i], columns[column], short_text(*value), unit));
    }
    body += fmt::format(R"(<polyline points="{}" class="c{}"/>)", path, column) + dots;
  }
  return svg::image(small_width, small_height, body);
}

}  // namespace ferrite::cli::bench
