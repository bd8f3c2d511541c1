// The table of the page, and its notes.
#pragma once

#include <string>

#include "cli/bench/report.hpp"

namespace ferrite::cli::bench {

/// All figures of a run as HTML: a line per row, and per column its time, speed-up over cpu, rate and error.
std::string page_table(const Report& report);

}  // namespace ferrite::cli::bench
