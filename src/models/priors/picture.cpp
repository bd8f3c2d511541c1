// A dataset as one self-contained HTML page: its causal graph, its first features against each other, its
// classes. SVG made here; no script, no style sheet, nothing from the network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/models/priors/describe.hpp"
#include "models/priors/graph_layout.hpp"

namespace ferrite::priors {
namespace {

constexpr const char* colours[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                   "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};

std::string edge_path(const std::vector<Point>& points) {
  std::string path = fmt::format("M{:.1f} {:.1f}", points[0].x, points[0].y);
  for (std::size_t k = 1; k < points.size(); ++k) {
    const Point a = points[k - 1], b = points[k];
    const double middle = (a.x + b.x) / 2;
    path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", middle, a.y, middle, b.y, b.x, b.y);
  }
  return path;
}

std::string graph_svg(const CausalGraph& graph) {
  const GraphLayout layout = layout_graph(graph);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\">\n",
                  layout.width, layout.height);
  const double opacity = std::clamp(60.0 / static_cast<double>(graph.edges.size() + 1), 0.12, 0.6);
  for (const std::vector<Point>& points : layout.edges)
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#444\" stroke-opacity=\"{:.2f}\"/>\n",
                       edge_path(points), opacity);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const CausalGraph::Node& node = graph.nodes[i];
    const Point at = layout.nodes[i];
    if (node.role == CausalGraph::Role::latent) {
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"#bbb\"/>\n", at.x, at.y,
                         dot_radius);
      continue;
    }
    const bool target = node.role == CausalGraph::Role::target;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#fff\">{}</text>\n",
        at.x - box_width / 2, at.y - box_height / 2, box_width, box_height, target ? colours[3] : colours[0],
        at.x, at.y + 4, node.label);
  }
  return svg + "</svg>\n";
}

/// Colour of a row: its class, or where its target lies between blue and red.
std::string colour(const MadeDataset& made, int row) {
  if (made.classes() > 0) return colours[made.label(row) % 10];
  const double t = std::clamp(0.5 + made.target(row) / 4, 0.0, 1.0);
  return fmt::format("rgb({:.0f},80,{:.0f})", 40 + 200 * t, 240 - 200 * t);
}

std::string scatter_svg(const MadeDataset& made) {
  constexpr int cell = 170, most = 4, points = 400;
  const int n = std::min(made.features(), most), rows = std::min(made.shape.rows, points);
  std::vector<double> low(static_cast<std::size_t>(n), 1e30), high(static_cast<std::size_t>(n), -1e30);
  for (int j = 0; j < n; ++j) {
    for (int r = 0; r < rows; ++r) {
      const double v = made.value(r, j);
      if (std::isnan(v)) continue;
      low[static_cast<std::size_t>(j)] = std::min(low[static_cast<std::size_t>(j)], v);
      high[static_cast<std::size_t>(j)] = std::max(high[static_cast<std::size_t>(j)], v);
    }
  }
  const auto at = [&](int j, double v) {
    const double l = low[static_cast<std::size_t>(j)], h = high[static_cast<std::size_t>(j)];
    return 8 + (cell - 20) * (h > l ? (v - l) / (h - l) : 0.5);
  };
  std::string svg = fmt::format("<svg width=\"{}\" height=\"{}\">\n", n * cell, n * cell);
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      svg +=
          fmt::format("<g transform=\"translate({},{})\"><rect width=\"{}\" height=\"{}\" fill=\"#f6f6f6\"/>",
                      b * cell, a * cell, cell - 6, cell - 6);
      if (a == b) svg += fmt::format("<text x=\"12\" y=\"24\">x{}</text>", a);
      for (int r = 0; a != b && r < rows; ++r) {
        const double x = made.value(r, b), y = made.value(r, a);
        if (std::isnan(x) || std::isnan(y)) continue;
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.8\" fill=\"{}\" fill-opacity=\".6\"/>",
                           at(b, x), cell - 6 - at(a, y), colour(made, r));
      }
      svg += "</g>\n";
    }
  }
  return svg + "</svg>\n";
}

std::string classes_svg(const MadeDataset& made) {
  std::vector<int> train(static_cast<std::size_t>(made.classes())), all = train;
  for (int r = 0; r < made.shape.rows; ++r) {
    ++all[static_cast<std::size_t>(made.label(r))];
    if (r < made.shape.train_rows) ++train[static_cast<std::size_t>(made.label(r))];
  }
  const int most = *std::max_element(all.begin(), all.end());
  std::string svg = fmt::format("<svg width=\"700\" height=\"{}\">\n", 26 * made.classes());
  for (std::size_t k = 0; k < all.size(); ++k) {
    const double full = 500.0 * all[k] / most, part = 500.0 * train[k] / most;
    svg += fmt::format(
        "<rect x=\"30\" y=\"{0}\" width=\"{1:.1f}\" height=\"20\" fill=\"{3}\" fill-opacity=\".35\"/>"
        "<rect x=\"30\" y=\"{0}\" width=\"{2:.1f}\" height=\"20\" fill=\"{3}\"/>"
        "<text x=\"0\" y=\"{4}\">{5}</text><text x=\"{6:.1f}\" y=\"{4}\">{7} ({8} train)</text>\n",
        26 * k, full, part, colours[k % 10], 26 * k + 15, k, 38 + full, all[k], train[k]);
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string picture_html(const Config& config, std::uint64_t seed, std::int64_t dataset) {
  MadeDataset made(config, seed, dataset);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>dataset {0}</title>\n"
      "<style>body{{font:14px sans-serif;margin:24px;max-width:960px}}svg text{{font:12px "
      "sans-serif}}</style></head>\n"
      "<body><h1>Dataset {0} of seed {1}</h1>\n<p>{2}, {3} rows ({4} for training), {5} features, {6}, "
      "attempt {7}</p>\n",
      dataset, seed, to_string(made.shape.family), made.shape.rows, made.shape.train_rows, made.features(),
      made.classes() > 0 ? fmt::format("{} classes", made.classes()) : "regression", made.key.attempt + 1);
  const std::string scatter = scatter_svg(made), balance = made.classes() > 0 ? classes_svg(made) : "";
  page +=
      "<h2>Causal graph</h2>\n<p>Causes left, effects right; dots are latent variables.</p>\n"
      "<div style=\"overflow:auto\">" +
      graph_svg(observed_part(causal_graph(made))) + "</div>\n";
  page += "<h2>First features</h2>\n" + scatter;
  if (!balance.empty()) page += "<h2>Classes</h2>\n" + balance;
  return page + "</body></html>\n";
}

}  // namespace ferrite::priors
