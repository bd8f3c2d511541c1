// --backend, the same for every subcommand that runs ops.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace ferrite::cli {

/// Adds --backend with the names of AnyBackend. `value` holds the default.
CLI::Option* add_backend_option(CLI::App* command, std::string& value, const std::string& help);

}  // namespace ferrite::cli
