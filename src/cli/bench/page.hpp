// The page of a run: plots and a table in one HTML file that needs no network.
#pragma once

#include <string>

#include "cli/bench/report.hpp"

namespace ferrite::cli::bench {

std::string page(const Report& report);

}  // namespace ferrite::cli::bench
