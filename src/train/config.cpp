// Checks of a trainer's settings.
#include "ferrite/train/config.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ferrite/core/error.hpp"

namespace ferrite::train {
namespace {

void check_at_least(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least)
    throw ValueError(fmt::format("[trainer] {} {}: must be at least {}", what, value, least));
}

}  // namespace

void TrainerConfig::check() const {
  check_at_least("steps", steps, 1);
  check_at_least("micro_batches", micro_batches, 1);
  check_at_least("report_every", report_every, 1);
  check_at_least("evaluate_every", evaluate_every, 0);
  check_at_least("checkpoint_every", checkpoint_every, 0);
  check_at_least("keep_checkpoints", keep_checkpoints, 1);
  check_at_least("patience", patience, 0);
  check_at_least("check_every", check_every, 0);
  check_at_least("recorded_kinds", recorded_kinds, 1);
  check_at_least("average_every", average_every, 1);
  if (!(average >= 0 && average < 1))
    throw ValueError(fmt::format("[trainer] average {}: must be at least 0 and below 1", average));
  if (!(min_delta >= 0) || !std::isfinite(min_delta))
    throw ValueError(fmt::format("[trainer] min_delta {}: must be a finite number of at least 0", min_delta));
  for (const char* own : {"optimizer", "schedule", "data", "micro_batches", "average", "format", "checksum"})
    if (settings.contains(own))
      throw ValueError(
          fmt::format("[trainer] setting '{}': the trainer has one of this name; choose another", own));
}

}  // namespace ferrite::train
