// Which names emitted C++ can use.
#pragma once

#include <string>
#include <string_view>

namespace ferrite::kernel {

/// Whether C++, CUDA or an emitted helper uses the name.
bool is_taken(std::string_view name);
/// The name, with a suffix if it is taken.
std::string free_name(const std::string& name);

}  // namespace ferrite::kernel
