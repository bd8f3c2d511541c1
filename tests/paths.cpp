#include "paths.hpp"

namespace ferrite::testing {

std::string source_folder() { return FERRITE_SOURCE_DIR; }
std::string program() { return FERRITE_CLI; }

}  // namespace ferrite::testing
