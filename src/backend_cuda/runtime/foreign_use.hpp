// Memory of a GPU in the hands of another library.
#pragma once

#include "ferrite/core/array.hpp"

namespace ferrite::cuda {

/// The consumer of an array may have given work on its memory to a stream of its own before it let go. Ours
/// would not wait for that; CUDA's default stream does, for every stream that was not made to ignore it. From
/// now on the memory is free once the default stream has done what it was given. Nothing to do for memory of
/// the host.
void wait_for_consumer(const Array& array) noexcept;

}  // namespace ferrite::cuda
