// --backend, the same for every subcommand that runs ops.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace ferrite::cli {

/// Adds --backend with the names of AnyBackend. `value` holds the default.
CLI::Option* add_backend_option(CLI::App* command, std::string& value, const std::string& help);

/// Whether this ferrite was built with CUDA, be there a GPU or not.
bool is_built_with_cuda();

}  // namespace ferrite::cli
