// Shared by `ferrite gpt import` and `ferrite gpt export`.
#pragma once

#include "ferrite/io/progress.hpp"
#include "ferrite/models/gpt/hugging_face.hpp"

namespace ferrite::cli::gpt {

/// Shows bytes on the bar, which must outlive it.
BytesWritten progress_on(ProgressLine& bar);

/// What was made, and the notes about it: sentences, or a JSON object.
void print_conversion(const ferrite::gpt::Converted& result, double seconds, bool json);

}  // namespace ferrite::cli::gpt
