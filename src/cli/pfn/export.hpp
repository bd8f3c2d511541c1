// The weights of a run in a file of their own, as `ferrite pfn export` and `ferrite pfn train --export` write
// them.
#pragma once

#include <filesystem>
#include <string>

#include "ferrite/core/dtype.hpp"

namespace ferrite::cli::pfn {

/// Writes the weights of a checkpoint, averaged ones if it has them, rounded to a dtype, with the settings
/// that say how they were made. Returns what to tell the user: both files' sizes. Throws ValueError if both
/// files are one, and what reading and writing throw.
std::string export_weights(const std::filesystem::path& checkpoint, const std::filesystem::path& out,
                           DType dtype);

}  // namespace ferrite::cli::pfn
