// One CUDA text out of those of many records.
#pragma once

#include <string>

#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

/// The kernel of record k is record<k>_entry, that of its gradient, where there is one, adjoint<k>_entry.
std::string module_text(std::span<const Record> records);

}  // namespace ferrite::irsynth
