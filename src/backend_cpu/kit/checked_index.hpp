// The index of gather, scatter and scatter_add, checked in a pass of its own: the loops that follow cannot
// fail half-way.
#pragma once

#include <string_view>

#include "ferrite/backend/cpu.hpp"

namespace ferrite::cpu {

/// The index as i64, every element in [-length, length). Along broadcast axes it is neither copied nor
/// checked twice.
Array checked_index(Cpu& backend, std::string_view name, const Array& given, int axis, std::int64_t length);

}  // namespace ferrite::cpu
