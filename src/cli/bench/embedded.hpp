// A file that is part of the program (cmake/Embed.cmake), and the commit it was built from.
#pragma once

#include <string_view>

namespace ferrite::cli::bench::embedded {

extern const std::string_view peers_py;
/// As `git describe` has it; "unknown" if the sources came without their history.
extern const std::string_view commit;

}  // namespace ferrite::cli::bench::embedded
