// Functions of Warp's library that are written in the language itself, so that everything that works on
// functions works on them.
#pragma once

#include <optional>
#include <string_view>

#include "ferrite/kernel/type.hpp"
#include "kernel/parse/syntax.hpp"

namespace ferrite::kernel {

/// Adds the definitions that kernels of this text may call; they count only if a kernel calls them.
void add_library(syntax::File& file, std::string_view text);

/// The function behind wp.name(state, x) for an x of this type; nothing if there is none.
std::optional<std::string_view> library_function(std::string_view name, Type x);
bool is_library_function(std::string_view name);

}  // namespace ferrite::kernel
