// One run of `ferrite bench`: every chosen row on every chosen backend and peer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/bench/report.hpp"

namespace ferrite::cli::bench {

enum class Voice : std::uint8_t { quiet, normal, verbose };

struct Plan {
  Selection selection;
  std::vector<std::string> backends, peers;
  Timing timing;
  std::optional<double> max_error;  // for all rows; without it, each op's own tolerance
  int threads = 0;                  // 0: as ferrite chooses
  bool has_limits = true;           // plain loops get only rows that end in seconds
  std::string python = "python3";
  Voice voice = Voice::normal;
};

/// Says on stderr how far it is. Throws ValueError for names that do not exist. What exists but is missing
/// here is a note.
Report run(const Plan& plan);

}  // namespace ferrite::cli::bench
