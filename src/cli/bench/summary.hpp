// The table that ends a run.
#pragma once

#include <string>

#include "cli/bench/report.hpp"

namespace ferrite::cli::bench {

/// A line per row; per column its time, its speed-up over cpu and its rate. Notes follow.
std::string summary(const Report& report);

}  // namespace ferrite::cli::bench
