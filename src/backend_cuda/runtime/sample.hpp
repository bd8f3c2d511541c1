// The rows that order_statistics samples first. One is drawn from every stretch of rows, so that periodic
// data does not mislead it. Host code can call it too: a test places misleading values there.
#pragma once

#include <cstdint>

#include "ferrite/core/rng.hpp"

namespace ferrite::cuda {

inline constexpr int sample_size = 8192;

/// For 0 <= i < sample_size and at least sample_size rows; ascends.
FERRITE_HOST_DEVICE inline std::int64_t sampled_row(int i, std::int64_t rows) {
  const std::int64_t stretch = rows / sample_size;
  const std::uint32_t word = random_block({}, static_cast<std::uint64_t>(i))[0];
  return i * rows / sample_size + (static_cast<std::int64_t>(word) * stretch >> 32);
}

}  // namespace ferrite::cuda
