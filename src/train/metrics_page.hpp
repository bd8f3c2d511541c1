// The page of a run's metrics.
#pragma once

#include <span>

#include "ferrite/train/metrics.hpp"

namespace ferrite::train {

/// HTML that needs no network. `running`: a browser loads it again every few seconds.
std::string metrics_page(std::span<const MetricsRow> rows, const MetricsConfig& config, std::int64_t steps,
                         bool running);

}  // namespace ferrite::train
