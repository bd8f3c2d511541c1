// GPU memory used by another library.
#pragma once

#include "ferrite/core/array.hpp"

namespace ferrite::cuda {

/// The consumer of an array may have queued work on its memory in its own stream before it let go. Our stream
/// would not wait for that work. CUDA's default stream does, for every stream that was not made to ignore it.
/// From now on the memory is free once the default stream has done its work. Does nothing for host memory.
FERRITE_API void wait_for_consumer(const Array& array) noexcept;

}  // namespace ferrite::cuda
