#include "cli/bench/page_table.hpp"

#include <fmt/format.h>

#include "cli/bench/page.hpp"
#include "cli/bench/plot.hpp"
#include "cli/command.hpp"
#include "ferrite/io/atomic_file.hpp"

namespace ferrite::cli {

namespace bench {

namespace {

std::string cell(const std::string& text, const char* kind = "") {
  return fmt::format(R"(<td class="{}">{}</td>)", kind, escaped(text));
}

std::string cells(const ResultRow& row, const std::string& column) {
  const auto found = row.figures.find(column);
  if (found == row.figures.end()) return "<td></td><td></td><td></td><td></td>";
  const Figure& figure = found->second;
  if (!figure.times)
    return fmt::format(R"(<td class="faint" title="{}">-</td><td></td><td></td><td></td>)",
                       escaped(figure.note));
  const auto faster = row.speed_up(column, "cpu"), rate = row.rate(column);
  return fmt::format(R"(<td title="at least {}, {} x {} calls">{}</td>)",
                     time_text(figure.times->min_seconds), figure.times->iterations, figure.times->calls,
                     time_text(figure.times->seconds)) +
         cell(faster && column != "cpu" ? short_text(*faster) + "x" : "") +
         cell(rate ? rate_text(*rate, row.bound) : "") +
         cell(figure.error ? fmt::format("{:.1e}", *figure.error) : "", figure.is_over ? "bad" : "faint");
}

}  // namespace

std::string page_table(const Report& report) {
  std::string head = "<th></th>", names = "<th>row</th>", body;
  for (std::size_t i = 0; i < report.columns.size(); ++i) {
    head += fmt::format(R"(<th colspan="4" class="c{}">{}</th>)", i, escaped(report.columns[i].name));
    names += "<th>time</th><th>over cpu</th><th>rate</th><th>error</th>";
  }
  for (const ResultRow& row : report.rows) {
    body += "<tr>" + cell(row.name());
    for (const Column& column : report.columns) body += cells(row, column.name);
    body += "</tr>";
  }
  std::string notes;
  for (const Column& column : report.columns)
    notes += fmt::format("<li>{}: {}</li>", escaped(column.name), escaped(column.what));
  for (const std::string& note : report.notes) notes += fmt::format("<li>{}</li>", escaped(note));
  return fmt::format(
      R"(<div class="scroll"><table><thead><tr>{}</tr><tr>{}</tr></thead><tbody>{}</tbody></table></div><ul>{}</ul>)",
      head, names, body, notes);
}

}  // namespace bench

void add_bench_page(CLI::App& bench, Action& action) {
  struct Options {
    std::string file, html;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = bench.add_subcommand("page", "Make the page of a file of --out");
  command->add_option("file", options->file, "The file of the run")->required();
  command->add_option("--html", options->html, "The page to write")->required();
  command->footer("Examples:\n  ferrite bench page bench.json --html bench.html");
  command->callback([&action, options] {
    action = [options] {
      write_text(options->html, bench::page(bench::read_report(options->file)));
      return success;
    };
  });
}

}  // namespace ferrite::cli
