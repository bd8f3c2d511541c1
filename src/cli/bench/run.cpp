#include "cli/bench/run.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "cli/bench/embedded.hpp"
#include "cli/bench/measure.hpp"
#include "cli/bench/peers.hpp"
#include "cli/machine.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/progress.hpp"

namespace ferrite::cli::bench {

namespace {

/// Progress by figures: a bar on a terminal, or a line for each.
class Progress {
 public:
  Progress(Voice voice, std::size_t total)
      : voice_(voice), total_(total), bar_(voice == Voice::quiet ? nullptr : stderr) {}

  void begin(const std::string& column, const std::string& row) {
    bar_(fmt::format("{} {}", column, row), static_cast<double>(done_) / static_cast<double>(total_));
  }
  void end(const std::string& column, const ResultRow& row, const Figure& figure) {
    ++done_;
    if (voice_ != Voice::verbose) return;
    std::string text = figure.note;
    if (figure.times)
      text = fmt::format("{}, at least {}, {} x {} calls", time_text(figure.times->seconds),
                         time_text(figure.times->min_seconds), figure.times->iterations, figure.times->calls);
    if (figure.error) text += fmt::format(", error {:.1e}", *figure.error);
    fmt::print(stderr, "[{}/{}] {} {}: {}\n", done_, total_, row.name(), column, text);
  }

 private:
  Voice voice_;
  std::size_t total_, done_ = 0;
  ProgressLine bar_;
};

std::string today() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

nlohmann::ordered_json settings_of(const Plan& plan) {
  nlohmann::ordered_json json{{"warmup", plan.timing.warmup},
                              {"iterations", plan.timing.iterations},
                              {"max_seconds", plan.timing.max_seconds},
                              {"threads", num_threads()},
                              {"limits", plan.has_limits}};
  if (plan.max_error) json["max_error"] = *plan.max_error;
  return json;
}

/// Backends that are here, in the order of their columns. A name that no backend has is an error.
std::vector<std::pair<std::string, AnyBackend>> open_backends(const Plan& plan, Report& report) {
  std::vector<std::pair<std::string, AnyBackend>> backends;
  for (const std::string& name : plan.backends) {
    if (report.has_column(name)) continue;  // was named twice
    try {
      AnyBackend backend(name);
      report.columns.push_back({name, backend.describe()});
      backends.emplace_back(name, std::move(backend));
    } catch (const ValueError&) {
      throw;
    } catch (const Error& e) {
      report.notes.push_back(fmt::format("{}: {}", name, e.what()));
    }
  }
  return backends;
}

/// Why a row is not run on a backend; empty if it is. Inputs, outputs and the check in f64 need memory.
std::string reason_to_skip(const Row& row, const std::string& backend, const Plan& plan) {
  if (plan.has_limits && runs_plain_loops(backend) && !suits_plain_loops(row.cost))
    return "too large for plain loops; --no-limits runs it";
  const double needed = 3 * row.cost.bytes;
  if (needed > static_cast<double>(free_bytes()))
    return fmt::format("needs {:.0f} GB of memory", std::ceil(needed / 1e9));
  return "";
}

Figure measure(RowRunner& runner, AnyBackend& backend, double max_error) {
  Figure figure;
  try {
    figure.error = runner.error_on(backend);
    figure.times = runner.time_on(backend);
    figure.is_over = figure.error && !(*figure.error <= max_error);
    if (figure.is_over) figure.note = fmt::format("error over {:.1e}", max_error);
    if (Cuda* const gpu = gpu_of(backend)) gpu->release_cache();
  } catch (const std::exception& e) {  // one that fails does not stop the others
    figure.note = e.what();
    figure.failed = true;
  }
  return figure;
}

}  // namespace

Report run(const Plan& plan) {
  const std::vector<Row> rows = select_rows(plan.selection);
  if (plan.threads > 0) set_num_threads(plan.threads);
  Report report{FERRITE_VERSION, std::string(embedded::commit), today(), {}, settings_of(plan), {}, {}, {}};
  auto backends = open_backends(plan, report);
  const std::vector<Peer> peers = open_peers(plan, report);
  if (report.columns.empty())
    throw ValueError(fmt::format("[bench] nothing to measure with: {}", fmt::join(report.notes, "; ")));
  Progress progress(plan.voice, rows.size() * report.columns.size());
  for (const Row& row : rows) {
    RowRunner runner(row, plan.timing);
    ResultRow result{row.op, row.dtype, row.size, row.bound, row.cost.flops, row.cost.bytes, {}};
    const auto take = [&](const std::string& column, const auto& make) {
      progress.begin(column, row.name());
      Figure& figure = result.figures[column] = make();
      progress.end(column, result, figure);
    };
    for (auto& [name, backend] : backends) {
      take(name, [&, &name = name, &backend = backend] {
        const std::string reason = reason_to_skip(row, name, plan);
        return reason.empty() ? measure(runner, backend, plan.max_error.value_or(row.tolerance))
                              : Figure{{}, {}, false, reason};
      });
    }
    for (const Peer& peer : peers) take(peer.name, [&] { return peer.measure(row, runner); });
    report.rows.push_back(std::move(result));
  }
  report.hardware = hardware_here();  // now, as the clocks of an idle machine are lower
  return report;
}

}  // namespace ferrite::cli::bench
