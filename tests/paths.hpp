// Where the tests find the project and its program. Only paths.cpp knows these paths, so that a compiler
// cache serves every other file in any folder.
#pragma once

#include <string>

namespace test_paths {

/// The project's folder.
std::string source_folder();
/// The program `ferrite`.
std::string program();

}  // namespace test_paths
