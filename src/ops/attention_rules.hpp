// What attention and self_attention have in common: the rule of their attributes.
#pragma once

#include "ferrite/ops/op.hpp"

namespace ferrite::op {

inline void check_window(std::string_view op, std::int64_t window) {
  detail::check_attribute(op, "window", static_cast<double>(window), window >= 0,
                          "must be the number of keys that a query sees, or 0 for no limit");
}

}  // namespace ferrite::op
