// What the tests of profiles share.
#pragma once

#include "ferrite/decorators/profiled.hpp"

namespace ferrite {

inline const OpProfile& find(const Profile& profile, std::string_view name, OpKind kind) {
  for (const OpProfile& op : profile.ops)
    if (op.name == name && op.kind == kind) return op;
  throw ValueError("no row for " + std::string(name));
}

}  // namespace ferrite
