// Keeps commands from writing over what they read.
#pragma once

#include <CLI/App.hpp>

namespace ferrite::cli {

/// For the command that was chosen, before it runs. Options that name what is written are known by their
/// names: --out, --html, --page, --save-fitted, and --json where it takes a file. ValueError if such a path
/// is empty, or is a file that another option or argument names too.
void check_written_files(const CLI::App& app);

}  // namespace ferrite::cli
