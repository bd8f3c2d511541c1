// Host memory for the results of ops.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ferrite/core/array.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite {

/// Dense; OutOfMemory names the op, the dtype and the shape.
inline Array allocate_on_host(const Meta& meta, std::string_view op) {
  try {
    return {host_allocator().allocate(meta.bytes()), Layout::contiguous(meta.shape), meta.dtype};
  } catch (const OutOfMemory& e) {
    std::string_view why = e.what();
    why.remove_prefix(std::min(why.size(), why.find("] ") + 2));  // the op stands in place of [allocate]
    throw OutOfMemory(fmt::format("[{}] {} needs {}", op, to_string(meta), why));
  }
}

}  // namespace ferrite
