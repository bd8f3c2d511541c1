// One CUDA text out of those of many records.
#pragma once

#include <string>

#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

/// The kernel of record k is record<k>_entry, that of its gradient, where there is one, adjoint<k>_entry.
/// Records in Warp's style, which needs Warp's headers, are there in the standalone one.
std::string module_text(Style style, std::span<const Record> records);

}  // namespace ferrite::irsynth
