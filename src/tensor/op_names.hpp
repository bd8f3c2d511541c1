// The names of the library's ops, without their headers.
#pragma once

#include <string_view>

namespace ferrite::detail {

bool is_library_op(std::string_view type_name);

}  // namespace ferrite::detail
