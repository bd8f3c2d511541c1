// Other libraries that run the same rows: Eigen, which is compiled in, and NumPy and PyTorch, which run in a
// Python of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench/measure.hpp"
#include "cli/bench/run.hpp"

namespace ferrite::cli::bench {

struct Peer {
  std::string name;
  std::function<Figure(const Row&, RowRunner&)> measure;
};

/// eigen, numpy, torch and torch-cuda.
const std::vector<std::string>& peer_names();

/// Those of the plan that are here, with their columns in the report. One that is missing here is a note, and
/// one that nobody knows a ValueError.
std::vector<Peer> open_peers(const Plan& plan, Report& report);

}  // namespace ferrite::cli::bench
