#include "cli/pfn/eval_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/svg.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::cli::pfn {

using namespace ferrite::pfn;

namespace {

using svg::line;
using svg::Scale;
using svg::scale_of;
using svg::short_text;
using svg::words;

constexpr double size = 300, left = 46, right = 12, top = 30, bottom = 40;
constexpr std::size_t most_dots = 2000;  // more would not be seen

std::string colour_of(std::size_t index) { return fmt::format("c{}", index % 8); }

/// Axes with their ticks and names; plots add to the body.
struct Frame {
  Scale x, y;
  std::string body;

  Frame(const std::string& title, const Scale& x_scale, const Scale& y_scale, const std::string& x_name)
      : x(x_scale), y(y_scale) {
    body = words(0, 14, title, "head", "start");
    for (const double tick : y.ticks()) {
      body += line(x.from, y.at(tick), x.to, y.at(tick), "grid");
      body += words(x.from - 6, y.at(tick) + 4, short_text(tick), "faint", "end");
    }
    const std::vector<double> ticks = x.ticks();
    const std::size_t every = ticks.size() > 6 ? 2 : 1;  // their texts would touch
    for (std::size_t i = 0; i < ticks.size(); i += every)
      body += words(x.at(ticks[i]), y.from + 14, short_text(ticks[i]), "faint", "middle");
    body += words((x.from + x.to) / 2, y.from + 28, x_name, "faint", "middle");
  }
  void guide(double x1, double y1, double x2, double y2) {
    body += R"(<g class="faint">)" + line(x.at(x1), y.at(y1), x.at(x2), y.at(y2), "mark") + "</g>";
  }
};

/// An axis without ticks beyond its ends by rounding.
Scale unit(double from, double to) { return {0, 1 + 1e-9, from, to}; }

}  // namespace

std::string shown(const std::string& name) {
  return quantile_tokenizer::shortened(quantile_tokenizer::printable(name), 30);
}

std::string roc_plot(const std::string& title, const std::vector<Curve>& curves) {
  Frame frame(title, unit(left, size - right), unit(size - bottom, top), "false positive rate");
  frame.guide(0, 0, 1, 1);
  double y = size + 4;
  std::string thin, thick;  // the latter lie on top
  for (const Curve& curve : curves) {
    std::string path;
    for (const CurvePoint& point : thinned(curve.points, 0.5 / (size - left - right)))
      path += fmt::format("{:.1f},{:.1f} ", frame.x.at(point.x), frame.y.at(point.y));
    (curve.is_thin ? thin : thick) += fmt::format(
        R"(<g class="{}"><polyline points="{}"{}/></g>)", colour_of(curve.colour), path,
        curve.is_thin ? R"( stroke-opacity="0.5" style="stroke-width:1")" : R"( style="stroke-width:2")");
    frame.body += words(left, y += 14, fmt::format("{}: {:.3f}", curve.name, area_under(curve.points)),
                        colour_of(curve.colour).c_str(), "start");
  }
  return svg::image(size, y + 8, frame.body + thin + thick);
}

std::string calibration_plot(const std::string& title, const std::vector<CalibrationBin>& bins,
                             std::size_t colour, const std::string& predicted, const std::string& observed) {
  constexpr double bars = 50;
  Frame frame(title, unit(left, size - right), unit(size - bottom, top), predicted);
  frame.guide(0, 0, 1, 1);
  std::int64_t most = 1;
  for (const CalibrationBin& bin : bins) most = std::max(most, bin.rows);
  std::string path, marks;
  for (const CalibrationBin& bin : bins) {
    const double x = frame.x.at(bin.predicted), y = frame.y.at(bin.observed);
    const double tenth = std::max(std::ceil(bin.predicted * 10) - 1, 0.0);  // neighbours may be close
    const double bar = frame.x.at((tenth + 0.5) / 10);
    const double height = std::max(bars * static_cast<double>(bin.rows) / static_cast<double>(most), 0.5);
    path += fmt::format("{:.1f},{:.1f} ", x, y);
    marks += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{} rows: predicted {:.3f}, {} {:.3f}</title></circle>)",
        x, y, bin.rows, bin.predicted, svg::escaped(observed), bin.observed);
    marks += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="9" height="{:.1f}" fill-opacity="0.5"/>)",
                         bar - 4.5, size + 8 + bars - height, height);
    marks += words(bar, size + bars + 20, std::to_string(bin.rows), "faint", "middle");
  }
  frame.body += fmt::format(R"(<g class="{}"><polyline points="{}"/>{}</g>)", colour_of(colour), path, marks);
  frame.body += words(size - right, 14, observed, "faint", "end");
  frame.body += words(left - 6, size + bars + 20, "rows", "faint", "end");
  return svg::image(size, size + bars + 26, frame.body);
}

std::string confusion_table(const std::vector<std::string>& names, const std::vector<std::int64_t>& counts) {
  std::string html = "<tr><th>true \\ predicted</th>";
  for (const std::string& name : names) html += "<th>" + svg::escaped(shown(name)) + "</th>";
  html += "<th>right</th></tr>";
  for (std::size_t a = 0; a < names.size(); ++a) {
    double all = 0;
    for (std::size_t b = 0; b < names.size(); ++b) all += static_cast<double>(counts[a * names.size() + b]);
    html += "<tr><td>" + svg::escaped(shown(names[a])) + "</td>";
    for (std::size_t b = 0; b < names.size(); ++b) {
      const std::int64_t count = counts[a * names.size() + b];
      html += fmt::format(R"x(<td style="background:rgba({},{:.2f})">{}</td>)x",
                          a == b ? "15,138,109" : "217,87,13",
                          all > 0 ? 0.6 * static_cast<double>(count) / all : 0, count);
    }
    const auto right_ones = static_cast<double>(counts[a * names.size() + a]);
    html += fmt::format(R"(<td class="faint">{:.1f} %</td></tr>)", all > 0 ? 100 * right_ones / all : 0);
  }
  return R"(<div class="scroll"><table>)" + html + "</table></div>";
}

std::string scatter_plot(const std::string& title, const std::vector<double>& x, const std::vector<double>& y,
                         std::size_t colour, const std::string& x_name, Guide guide) {
  std::vector<double> x_values = x, y_values = y;
  if (guide == Guide::diagonal) {
    x_values.insert(x_values.end(), y.begin(), y.end());
    y_values = x_values;
  } else {
    y_values.push_back(0);
  }
  Frame frame(title, scale_of(x_values, left, size - right), scale_of(y_values, size - bottom, top), x_name);
  if (guide == Guide::diagonal)
    frame.guide(frame.x.low, frame.x.low, frame.x.high, frame.x.high);
  else
    frame.guide(frame.x.low, 0, frame.x.high, 0);
  const std::size_t step = (x.size() + most_dots - 1) / most_dots;
  std::string dots;
  for (std::size_t i = 0; i < x.size(); i += step)
    dots += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2"/>)", frame.x.at(x[i]), frame.y.at(y[i]));
  frame.body += fmt::format(R"(<g class="{}" fill-opacity="0.5">{}</g>)", colour_of(colour), dots);
  return svg::image(size, size, frame.body);
}

std::string histogram_plot(const std::string& title, const std::vector<HistogramBin>& bins,
                           std::size_t colour, const std::string& x_name) {
  std::vector<double> counts{0};
  for (const HistogramBin& bin : bins) counts.push_back(static_cast<double>(bin.rows));
  const std::vector<double> ends{bins.front().low, bins.back().high};
  Frame frame(title, scale_of(ends, left, size - right), scale_of(counts, size - bottom, top), x_name);
  std::string bars;
  for (const HistogramBin& bin : bins) {
    const double from = frame.x.at(bin.low), high = frame.y.at(static_cast<double>(bin.rows));
    bars += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{} to {}: {} rows</title></rect>)",
        from, high, std::max(frame.x.at(bin.high) - from - 1, 0.5), frame.y.from - high, short_text(bin.low),
        short_text(bin.high), bin.rows);
  }
  frame.body += fmt::format(R"(<g class="{}">{}</g>)", colour_of(colour), bars);
  return svg::image(size, size, frame.body);
}

std::string importance_plot(const std::vector<ColumnImportance>& columns, std::size_t colour) {
  constexpr double names = 220, width = 620, height = 20;
  std::vector<double> ends{0};
  for (const ColumnImportance& column : columns) {
    ends.push_back(column.mean - column.deviation);
    ends.push_back(column.mean + column.deviation);
  }
  const Scale x = scale_of(ends, names, names + width);
  std::string body, bars;
  double y = 26;
  for (const ColumnImportance& column : columns) {
    const double from = x.at(std::min(column.mean, 0.0)), to = x.at(std::max(column.mean, 0.0));
    body += words(names - 10, y + 10, shown(column.column), "", "end");
    bars += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="12" fill-opacity="0.6"><title>{:.4f} +- {:.4f}</title></rect>)",
        from, y, std::max(to - from, 0.5), column.mean, column.deviation);
    bars +=
        fmt::format(R"(<polyline points="{:.1f},{:.1f} {:.1f},{:.1f}"/>)",
                    x.at(column.mean - column.deviation), y + 6, x.at(column.mean + column.deviation), y + 6);
    y += height;
  }
  std::string axis;
  for (const double tick : x.ticks()) {
    axis += line(x.at(tick), 20, x.at(tick), y, "grid");
    axis += words(x.at(tick), 14, short_text(tick), "faint", "middle");
  }
  return R"(<div class="scroll">)" +
         svg::image(names + width + 40, y + 6,
                    axis + body + fmt::format(R"(<g class="{}">{}</g>)", colour_of(colour), bars)) +
         "</div>";
}

}  // namespace ferrite::cli::pfn
