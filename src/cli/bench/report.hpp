// The result of a run of `ferrite bench`: what the table, the page and the file are made of. docs/bench.md
// describes the file.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/rows.hpp"
#include "cli/bench/timing.hpp"

namespace ferrite::cli::bench {

inline constexpr int schema_version = 1;

/// One row on one backend or peer. Without times, the note says why there are none.
struct Figure {
  std::optional<Times> times;
  std::optional<double> error;  // may be NaN
  bool is_over = false;         // the error is larger than allowed
  std::string note;
  bool failed = false;  // it was tried and threw; the note says what
  bool is_wrong() const { return is_over || failed; }
};

/// A backend or a peer.
struct Column {
  std::string name, what;  // "cpu", "cpu (sve, 2 threads)"
  bool is_peer = false;
};

struct ResultRow {
  std::string op, dtype, size;
  Bound bound = Bound::bytes;
  double flops = 0, bytes = 0;
  std::map<std::string, Figure> figures;  // by column

  std::string name() const { return op + "/" + dtype + "/" + size; }
  /// Nothing if it was not measured.
  std::optional<double> seconds(const std::string& column) const;
  /// Operations or bytes per second, whichever the row is about.
  std::optional<double> rate(const std::string& column) const;
  std::optional<double> error(const std::string& column) const;
  /// The time on `base` over that on `column`.
  std::optional<double> speed_up(const std::string& column, const std::string& base) const;
};

struct Report {
  std::string version, commit, date;
  nlohmann::ordered_json hardware, settings;
  std::vector<Column> columns;
  std::vector<ResultRow> rows;
  std::vector<std::string> notes;  // about the run as a whole: what was asked for and is not here

  bool has_column(const std::string& name) const;
  /// Whether a row failed on one of ferrite's backends, or its error is larger than allowed.
  bool is_any_wrong() const;
};

nlohmann::ordered_json to_json(const Report& report);
/// Throws IoError or ParseError if the file is not a report or has another schema_version.
Report read_report(const std::string& path);

/// Of this machine and its clocks now; "unknown" where it does not tell.
nlohmann::ordered_json hardware_here();

/// Of positive numbers; 1 if there are none.
double geometric_mean(const std::vector<double>& values);

/// "12.3 us"
std::string time_text(double seconds);
/// "1.23 TFLOP/s", "45.6 GB/s"
std::string rate_text(double rate, Bound bound);

}  // namespace ferrite::cli::bench
