// When something ran: returned by stopwatches and kept in profiles.
#pragma once

#include <cstdint>

namespace ferrite {

/// In nanoseconds of any one clock.
struct TimeSpan {
  std::int64_t start = 0;
  std::int64_t duration = 0;
};

}  // namespace ferrite
