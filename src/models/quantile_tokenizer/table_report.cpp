// Reports of a fit: a table for the terminal, one self-contained page with a picture per column, and notes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/models/quantile_tokenizer/table_tokenizer.hpp"
#include "io/svg.hpp"
#include "models/quantile_tokenizer/dates.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

using svg::escaped;

std::string share_text(double share) { return std::isnan(share) ? "-" : fmt::format("{:.2f}%", 100 * share); }

/// The columns of the table, as text.
struct Row {
  std::string name, kind, values, missing, range, tokens, fullest, unknown;
};

/// A number of a column of this kind.
std::string value_text(double value, ColumnKind kind) {
  return is_date(kind) ? date_text(value, kind == ColumnKind::date) : fmt::format("{:.6g}", value);
}

Row row_of(ColumnKind kind, const ColumnFit& c) {
  return {c.name,
          c.count == 0      ? "empty"
          : c.is_constant() ? "constant"
                            : std::string(to_string(kind)),
          std::to_string(c.count),
          std::to_string(c.missing),
          c.count == 0 ? "-" : value_text(c.least, kind) + " to " + value_text(c.greatest, kind),
          std::to_string(c.bins()),
          share_text(c.largest_share()),
          "-"};
}

Row row_of(const std::string& name, ColumnKind kind, const CategoryFit& c) {
  const std::int64_t values = c.rows() - c.missing;
  const auto top = std::max_element(c.counts.begin(), c.counts.end());
  const bool constant = c.names.size() == 1 && c.dropped == 0;
  return {name,
          c.names.empty() ? "empty"
          : constant      ? "constant"
                          : std::string(to_string(kind)),
          std::to_string(values),
          std::to_string(c.missing),
          c.names.empty() ? "-" : fmt::format("{} to {}", c.names.front(), c.names.back()),
          std::to_string(c.names.size()),
          c.names.empty() ? "-" : share_text(static_cast<double>(*top) / static_cast<double>(values)),
          c.dropped == 0 ? "-" : std::to_string(c.dropped)};
}

constexpr double picture_width = 640, picture_height = 120;

/// A histogram: bars as wide as the bins and as high as their density, with a tick per edge.
std::string histogram(ColumnKind kind, const ColumnFit& c) {
  const auto finite_end = [&](double end, double edge) { return std::isinf(end) ? edge : end; };
  if (c.count == 0 || c.edges.empty()) return "";
  const double low = finite_end(c.least, c.edges.front()), high = finite_end(c.greatest, c.edges.back());
  if (!(high > low) || !std::isfinite(high - low)) return "";
  const auto x_of = [&](double v) { return std::clamp((v - low) / (high - low), 0.0, 1.0) * picture_width; };
  std::vector<double> density;
  const auto bounds = [&](std::size_t bin) {
    return std::pair(bin == 0 ? low : c.edges[bin - 1], bin == c.edges.size() ? high : c.edges[bin]);
  };
  for (std::size_t bin = 0; bin < c.bin_counts.size(); ++bin) {
    const auto [from, to] = bounds(bin);
    density.push_back(to > from ? static_cast<double>(c.bin_counts[bin]) / (to - from) : 0);
  }
  std::string svg = fmt::format("<svg viewBox='0 0 {} {}' role='img'>", picture_width, picture_height + 8);
  const double top = density.empty() ? 0 : *std::max_element(density.begin(), density.end());
  for (std::size_t bin = 0; bin < density.size() && top > 0; ++bin) {
    const auto [from, to] = bounds(bin);
    const double height = picture_height * density[bin] / top;
    svg += fmt::format(
        "<rect x='{:.2f}' y='{:.2f}' width='{:.2f}' height='{:.2f}'><title>bin {}: {} to {}, {} "
        "values</title></rect>",
        x_of(from), picture_height - height, std::max(x_of(to) - x_of(from) - 0.3, 0.2), height, bin,
        value_text(from, kind), value_text(to, kind), c.bin_counts[bin]);
  }
  for (const double edge : c.edges)
    svg += fmt::format("<line x1='{0:.2f}' x2='{0:.2f}' y1='{1}' y2='{2}'/>", x_of(edge), picture_height,
                       picture_height + 6);
  return svg + "</svg>";
}

/// The most frequent categories as bars.
std::string bars(const CategoryFit& c) {
  std::vector<std::size_t> order(c.names.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return c.counts[a] > c.counts[b]; });
  order.resize(std::min<std::size_t>(order.size(), 12));
  std::string html = "<table class='bars'>";
  for (const std::size_t i : order)
    html += fmt::format("<tr><td>{}</td><td>{}</td><td><div style='width:{:.1f}%'></div></td></tr>", i,
                        escaped(shortened(c.names[i], 40)),
                        100.0 * static_cast<double>(c.counts[i]) / static_cast<double>(c.counts[order[0]]));
  if (order.size() < c.names.size())
    html += fmt::format("<tr><td></td><td>{} more</td><td></td></tr>", c.names.size() - order.size());
  return html + "</table>";
}

std::string missing_text(const TableTokenizer& t) {
  if (t.categories().empty() || t.missing_token() == t.missing_category_token())
    return std::to_string(t.missing_token());
  return fmt::format("{} ({} in categories)", t.missing_token(), t.missing_category_token());
}

constexpr std::string_view style = R"(<style>
:root{color-scheme:light dark;--ink:#1c2430;--soft:#66707e;--line:#d8dde4;--bar:#3b6fb5;--card:#fff;--page:#f5f6f8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa4b2;--line:#39424e;--bar:#7aa7e6;--card:#1d232b;--page:#14181d}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);margin:2rem auto;max-width:60rem;padding:0 1rem}
table.all{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;margin-bottom:2rem}
.all th,.all td{text-align:left;padding:.3rem .7rem;border-bottom:1px solid var(--line)}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem 1.2rem;margin:1rem 0}
h2{font-size:1rem;margin:0}p{color:var(--soft);margin:.1rem 0 .6rem}svg{width:100%;height:auto;display:block}
rect{fill:var(--bar)}line{stroke:var(--soft);stroke-width:.6}.bars{width:100%}.bars td:nth-child(1){color:var(--soft);width:3rem}
.bars td:nth-child(2){width:16rem}.bars div{background:var(--bar);height:.8rem;border-radius:2px}</style>)";

}  // namespace

std::string TableTokenizer::report() const {
  std::vector<Row> rows{{"column", "kind", "values", "missing", "range", "tokens", "fullest", "unknown"}};
  for (const TableColumn& c : columns_)
    rows.push_back(is_binned(c.kind) ? row_of(c.kind, numeric_.columns()[c.place])
                                     : row_of(c.name, c.kind, categories_[c.place]));
  std::size_t name = 0, kind = 0, range = 0;
  for (Row& r : rows) {
    r.name = shortened(printable(r.name), 32);
    r.range = shortened(printable(r.range), 50);  // two dates with milliseconds
    name = std::max(name, r.name.size());
    kind = std::max(kind, r.kind.size());
    range = std::max(range, r.range.size());
  }
  std::string text;
  for (const Row& r : rows)
    text += fmt::format("{:<{}}  {:<{}}  {:>10}  {:>10}  {:<{}}  {:>6}  {:>8}  {}\n", r.name, name, r.kind,
                        kind, r.values, r.missing, r.range, range, r.tokens, r.fullest, r.unknown);
  return text + fmt::format("{} columns; tokens are {}, {} is missing, {} unknown\n", columns_.size(),
                            to_string(width()), missing_text(*this), unknown_token());
}

std::vector<std::string> TableTokenizer::notes() const {
  std::vector<std::string> all;
  for (const TableColumn& c : columns_) {
    if (is_binned(c.kind)) {
      const ColumnFit& fit = numeric_.columns()[c.place];
      if (!fit.merged) continue;
      const Closed closed = numeric_.config().closed;
      const BinRange range = fit.bin_range(closed == Closed::left ? fit.bins() - 1 : 0, closed);
      all.push_back(fmt::format(
          "column '{}': the values from {} to {} have one token, though some are frequent enough for tokens "
          "of their own. --duplicates merge, without --like, gives them those",
          printable(c.name), value_text(range.least, c.kind), value_text(range.greatest, c.kind)));
      continue;
    }
    const CategoryFit& fit = categories_[c.place];
    if (2 * fit.dropped <= fit.rows()) continue;
    all.push_back(
        fmt::format("column '{0}': {1} of {2} rows hold none of its {3} most frequent texts and are unknown. "
                    "--drop '{0}' leaves it out, --categories keeps more",
                    printable(c.name), fit.dropped, fit.rows(), fit.names.size()));
  }
  return all;
}

std::string TableTokenizer::report_page(std::string_view title) const {
  std::string html = fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'>"
      "<title>{0}</title>{1}<h1>{0}</h1><p>{2} columns; tokens are {3}, {4} is missing, {5} unknown; {6} "
      "quantiles, "
      "bins closed on the {7}</p>",
      escaped(std::string(title)), style, columns_.size(), to_string(width()), missing_text(*this),
      unknown_token(), ferrite::to_string(numeric_.config().method),
      ferrite::to_string(numeric_.config().closed));
  for (const TableColumn& c : columns_) {
    const bool binned = is_binned(c.kind);
    const Row r =
        binned ? row_of(c.kind, numeric_.columns()[c.place]) : row_of(c.name, c.kind, categories_[c.place]);
    html += fmt::format(
        "<section><h2>{}</h2><p>{}; {} values, {} missing, {} unknown; {}; {} tokens, the fullest with "
        "{}</p>{}"
        "</section>",
        escaped(r.name), r.kind, r.values, r.missing, r.unknown == "-" ? "0" : r.unknown, escaped(r.range),
        r.tokens, r.fullest,
        binned ? histogram(c.kind, numeric_.columns()[c.place]) : bars(categories_[c.place]));
  }
  return html + "</html>\n";
}

}  // namespace ferrite::quantile_tokenizer
