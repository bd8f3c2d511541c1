// Strides, paddings and kernels of the convolutions and pools.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/ops/op.hpp"

namespace ferrite::op {

/// Two numbers small enough for any sum of them and an extent.
inline void check_pair(std::string_view op, std::string_view what, const Shape& pair, std::int64_t least) {
  constexpr std::int64_t most = INT32_MAX;
  if (pair.rank() != 2 || std::min(pair[0], pair[1]) < least || std::max(pair[0], pair[1]) > most)
    throw ValueError(
        fmt::format("[{}] {} {}: needs two numbers from {} to {}", op, what, to_string(pair), least, most));
}

}  // namespace ferrite::op
