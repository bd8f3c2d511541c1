// How a backend started a kernel, as one text for the trace. It travels beside the op, whose interface knows
// nothing of blocks.
#pragma once

#include <string>

#include "ferrite/core/export.hpp"

namespace ferrite::detail {

/// About the call that this thread measures now. The last text counts.
FERRITE_API void note_launch(std::string text);
/// The text, which is gone then; empty if there is none.
FERRITE_API std::string take_launch_note();

}  // namespace ferrite::detail
