// When something ran: what stopwatches give and profiles keep.
#pragma once

#include <cstdint>

namespace ferrite {

/// In nanoseconds of any one clock.
struct TimeSpan {
  std::int64_t start = 0;
  std::int64_t duration = 0;
};

}  // namespace ferrite
