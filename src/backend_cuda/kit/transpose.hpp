// Copies between layouts whose dense axes differ: reads along one axis and writes along the other through a
// tile of shared memory, so that both sides access whole sectors.
#pragma once

#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// Copies `from` to `to`, of one shape and dtype, if it is such a case: `to` has an axis of stride 1, `from`
/// has another one, both long enough for a tile. Else nothing happens and the result is false.
bool transpose(const Call& call, const Array& from, const Array& to);

}  // namespace ferrite::cuda
