// Where the tests find the project and its program. Only paths.cpp knows these paths, so that a compiler
// cache serves every other file in any folder.
#pragma once

#include <string>

namespace ferrite::testing {

/// The project's folder.
std::string source_folder();
/// The program `ferrite`.
std::string program();

}  // namespace ferrite::testing
