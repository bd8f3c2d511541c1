// --json: what a subcommand prints for other programs.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ferrite::cli {

/// On standard output, indented. JSON is UTF-8: the names of files, and texts that end within a character,
/// need not be; what is none is shown as U+FFFD.
template <class Json>
void show_json(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace ferrite::cli
