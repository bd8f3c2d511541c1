// One reduction for all groups: the order of the ranks, and one rounding at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ferrite/dist/group.hpp"

namespace ferrite::dist {

/// out = the reduction of `parts`, one for each rank and in their order, of `count` elements each. A part may
/// be `out` itself. The dtype is one that Group::all_reduce allows for the op.
void reduce_in_rank_order(DType dtype, ReduceOp op, std::span<const std::byte* const> parts, std::byte* out,
                          std::int64_t count);
/// Divides every element: the second half of a mean. Floats only.
void divide(DType dtype, std::byte* data, std::int64_t count, int divisor);

}  // namespace ferrite::dist
