// --backend, the same for every subcommand that runs ops.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace ferrite {
class AnyBackend;
}

namespace ferrite::cli {

/// Adds --backend with the names of AnyBackend. `value` holds the default.
CLI::Option* add_backend_option(CLI::App* command, std::string& value, const std::string& help);

/// What --precision means on a backend: "auto" is bf16 on a GPU and f32 elsewhere, others are themselves.
std::string precision_on(const AnyBackend& backend, const std::string& precision);

/// Whether this ferrite was built with CUDA, be there a GPU or not.
bool is_built_with_cuda();

}  // namespace ferrite::cli
