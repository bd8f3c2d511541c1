// The backends of `ferrite replay`.
#pragma once

#include "ferrite/replay.hpp"

namespace ferrite::cli {

/// With every op of the library; cpu comes first.
Replayer library_replayer();

}  // namespace ferrite::cli
