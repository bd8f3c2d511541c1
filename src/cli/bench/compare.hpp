// ferrite bench compare: two runs side by side, as a gate against rows that have become slower or are gone.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/report.hpp"

namespace ferrite::cli::bench {

enum class By : std::uint8_t { median, least };

/// One row on one backend in both runs.
struct Change {
  std::string row, column;
  double before = 0, after = 0;  // seconds
  /// Above 1 it has become faster.
  double ratio() const { return before / after; }
};

struct RunComparison {
  std::vector<Change> changes;                       // worst first
  std::vector<std::string> only_before, only_after;  // "add/f32/1K cpu"
  std::vector<std::string> wrong_after;              // had a time before, and now fails or has a large error
  std::vector<std::string> warnings;                 // about what makes the runs hard to compare

  double mean_ratio() const;  // geometric
  std::size_t count_below(double limit) const;
};

RunComparison compare(const Report& before, const Report& after, By by);
/// A line per change, the marks of those below the limit, and what the numbers mean.
std::string to_text(const RunComparison& comparison, double limit);

}  // namespace ferrite::cli::bench
