#include "paths.hpp"

namespace test_paths {

std::string source_folder() { return FERRITE_SOURCE_DIR; }
std::string program() { return FERRITE_CLI; }

}  // namespace test_paths
