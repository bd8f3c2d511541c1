#include "cli/bench/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/bench/page_table.hpp"
#include "cli/bench/plot.hpp"
#include "io/page_style.hpp"

namespace ferrite::cli::bench {

namespace {

using Value = std::optional<double>;

/// What the plots of one report share.
class Page {
 public:
  explicit Page(const Report& report) : report_(report) {
    for (const Column& column : report.columns) columns_.push_back(column.name);
    for (const ResultRow& row : report.rows) {
      const std::string key = row.op + "/" + row.dtype;
      const auto same = [&](const auto& group) { return group.first == key; };
      auto found = std::find_if(groups_.begin(), groups_.end(), same);
      if (found == groups_.end()) found = groups_.insert(groups_.end(), {key, {}});
      found->second.push_back(&row);
    }
  }

  std::string speed_ups(const std::string& base) const {
    if (!report_.has_column(base) || columns_.size() < 2) return "";
    const auto value = [&](const ResultRow& row, const std::string& column) {
      return column == base ? Value() : row.speed_up(column, base);
    };
    const std::vector<Mark> marks{{1, base, {}}};
    std::vector<Dots> by_op;
    for (const auto& [key, rows] : groups_) by_op.push_back(folded(key, rows, value, geometric_mean));
    return section(
        "Speed-up over " + base,
        fmt::format(
            "The time on {} over the time of a column, as the geometric mean over the sizes of an op: "
            "right of the line a column is faster than {}.",
            base, base),
        dot_plot(kept(by_op), columns_, "times", marks) +
            folded_away("Every row", dot_plot(every_row(value), columns_, "times", marks)));
  }

  std::string arithmetic() const {
    std::vector<Dots> lines;
    for (const ResultRow& row : report_.rows)
      if (row.bound == Bound::flops) lines.push_back(dots_of(row, scaled_rate));
    return section(
        "Arithmetic",
        "Products, convolutions and training steps. The dashed lines are each column's best matrix product.",
        dot_plot(kept(lines), columns_, "GFLOP/s", ceilings("matmul")));
  }

  std::string bandwidth() const {
    std::vector<Dots> lines;
    for (const auto& [key, rows] : groups_)
      if (rows.back()->bound == Bound::bytes) lines.push_back(dots_of(*rows.back(), scaled_rate));
    return section("Bandwidth",
                   "Bytes that an op must move, inputs read once and outputs written once, over its time, "
                   "for the largest size of "
                   "each op. The dashed lines are each column's largest copy.",
                   dot_plot(kept(lines), columns_, "GB/s", ceilings("copy")));
  }

  std::string scaling() const {
    std::string plots;
    for (const auto& [key, rows] : groups_) {
      if (rows.size() < 3) continue;
      std::vector<std::string> labels;
      std::vector<Dots> values;
      for (const ResultRow* row : rows) {
        labels.push_back(row->size);
        values.push_back(dots_of(*row, scaled_rate));
      }
      plots +=
          line_plot(key, labels, values, columns_, rows[0]->bound == Bound::flops ? "GFLOP/s" : "GB/s", {});
    }
    if (plots.empty()) return "";
    return section("Scaling with size",
                   "Small sizes show what a call costs, middle ones the caches, large ones the memory or the "
                   "arithmetic.",
                   R"(<div class="grid">)" + plots + "</div>");
  }

  std::string errors() const {
    const auto value = [](const ResultRow& row, const std::string& column) { return row.error(column); };
    const auto largest = [](const std::vector<double>& all) {
      return *std::max_element(all.begin(), all.end());
    };
    std::vector<Dots> lines;
    for (const auto& [key, rows] : groups_) lines.push_back(folded(key, rows, value, largest));
    return section("Error",
                   "Distance from the same computation in float64, relative, by L2 norms; the largest over "
                   "the sizes of an op. Exact "
                   "results have no dot.",
                   dot_plot(kept(lines), columns_, "relative", {}));
  }

  /// The ceiling of a column: its best product, or its largest copy, in billions per second.
  Value ceiling(const std::string& op, const std::string& column) const {
    Value found;
    double bytes = 0;
    for (const ResultRow& row : report_.rows) {
      const Value rate = row.op == op ? scaled_rate(row, column) : Value();
      if (!rate || !(op == "copy" ? row.bytes > bytes : !found || *rate > *found)) continue;
      found = rate;
      bytes = row.bytes;
    }
    return found;
  }

 private:
  static Value scaled_rate(const ResultRow& row, const std::string& column) {
    const Value rate = row.rate(column);
    return rate ? *rate / 1e9 : rate;
  }
  template <class F>
  Dots dots_of(const ResultRow& row, const F& value) const {
    Dots dots{row.name(), {}};
    for (const std::string& column : columns_) dots.values.push_back(value(row, column));
    return dots;
  }
  template <class F>
  std::vector<Dots> every_row(const F& value) const {
    std::vector<Dots> lines;
    for (const ResultRow& row : report_.rows) lines.push_back(dots_of(row, value));
    return kept(lines);
  }
  /// One line for the rows of a group; `fold` makes one number of the positive ones.
  template <class F, class Fold>
  Dots folded(const std::string& key, const std::vector<const ResultRow*>& rows, const F& value,
              const Fold& fold) const {
    Dots dots{key, {}};
    for (const std::string& column : columns_) {
      std::vector<double> all;
      for (const ResultRow* row : rows)
        if (const Value v = value(*row, column); v && *v > 0 && std::isfinite(*v)) all.push_back(*v);
      dots.values.push_back(all.empty() ? Value() : fold(all));
    }
    return dots;
  }
  /// Without the lines that have no dot.
  static std::vector<Dots> kept(std::vector<Dots> lines) {
    std::erase_if(lines, [](const Dots& dots) {
      return std::none_of(dots.values.begin(), dots.values.end(), [](const Value& v) { return v && *v > 0; });
    });
    return lines;
  }
  std::vector<Mark> ceilings(const std::string& op) const {
    std::vector<Mark> marks;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (const Value found = ceiling(op, columns_[i]))
        marks.push_back({*found, fmt::format("{} of {}: {}", op, columns_[i], short_text(*found)), i});
    return marks;
  }
  static std::string section(const std::string& title, const std::string& about, const std::string& content) {
    return fmt::format("<h2>{}</h2><p>{}</p>{}", escaped(title), escaped(about), content);
  }
  static std::string folded_away(const std::string& title, const std::string& content) {
    return fmt::format("<details><summary>{}</summary>{}</details>", title, content);
  }

  const Report& report_;
  std::vector<std::string> columns_;
  std::vector<std::pair<std::string, std::vector<const ResultRow*>>> groups_;  // by op and dtype, in order
};

/// The story in a few numbers: how much faster, how close to the ceilings, how exact.
std::string cards(const Report& report, const Page& page) {
  std::string text;
  const auto add = [&](const std::string& number, const std::string& about) {
    text += fmt::format(R"(<div class="card"><b>{}</b>{}</div>)", escaped(number), escaped(about));
  };
  for (const Column& column : report.columns) {
    std::vector<double> ratios;
    for (const ResultRow& row : report.rows)
      if (const auto ratio = row.speed_up("cpu", column.name)) ratios.push_back(*ratio);
    if (column.name == "cpu" || ratios.empty()) continue;
    const double mean = geometric_mean(ratios);
    if (mean >= 1)
      add(short_text(mean) + "x",
          fmt::format("cpu faster than {}, mean of {} rows", column.name, ratios.size()));
    else
      add(short_text(1 / mean) + "x",
          fmt::format("{} faster than cpu, mean of {} rows", column.name, ratios.size()));
  }
  for (const Column& column : report.columns) {
    if (column.is_peer || column.name == "reference") continue;
    if (const auto rate = page.ceiling("matmul", column.name))
      add(rate_text(*rate * 1e9, Bound::flops), "best matmul on " + column.name);
    if (const auto rate = page.ceiling("copy", column.name))
      add(rate_text(*rate * 1e9, Bound::bytes), "largest copy on " + column.name);
  }
  std::size_t over = 0, checked = 0;
  for (const ResultRow& row : report.rows)
    for (const auto& [column, figure] : row.figures) {
      over += figure.is_over;
      checked += figure.error.has_value();
    }
  if (checked > 0) add(fmt::format("{} of {}", checked - over, checked), "results within their error");
  return text;
}

std::string facts(const Report& report) {
  std::vector<std::string> all;
  if (report.hardware.contains("cpu")) {
    const auto& cpu = report.hardware["cpu"];
    all.push_back(fmt::format("{}, {} cores, {} threads", cpu.value("name", "unknown"), cpu.value("cores", 0),
                              cpu.value("threads", 0)));
  }
  if (report.hardware.contains("gpus"))
    for (const auto& gpu : report.hardware["gpus"])
      all.push_back(
          fmt::format("{}, driver {}", gpu.value("name", "unknown"), gpu.value("driver", "unknown")));
  all.push_back(fmt::format("ferrite {} ({})", report.version, report.commit));
  all.push_back(report.date);
  return fmt::format("{}", fmt::join(all, " · "));
}

std::string legend(const Report& report) {
  std::string text;
  for (std::size_t i = 0; i < report.columns.size(); ++i)
    text += fmt::format(R"(<span title="{}"><b class="c{}">&#9679;</b> {}</span>)",
                        escaped(report.columns[i].what), i, escaped(report.columns[i].name));
  return text;
}

/// More specific than the style of all pages, which follows it.
constexpr const char* style = R"(<style>
body .grid { display: grid; grid-template-columns: repeat(auto-fill, 320px); }
.legend { position: sticky; top: 0; background: var(--back); padding: .5em 0; border-bottom: 1px solid var(--grid); }
</style>
)";

}  // namespace

std::string page(const Report& report) {
  const Page plots(report);
  const std::string all = plots.speed_ups("cpu") + plots.speed_ups("reference") + plots.arithmetic() +
                          plots.bandwidth() + plots.scaling() + plots.errors();
  const std::string body = fmt::format(R"(<div class="cards">{}</div>
<div class="legend">{}</div>
{}
<h2>All figures</h2>
<p>Medians; hover over a time for the least one, and over a dash for why there is none. Speed-ups are over cpu.</p>
{}
)",
                                       cards(report, plots), legend(report), all, page_table(report));
  return svg::page("ferrite bench", facts(report), body, style);
}

}  // namespace ferrite::cli::bench
