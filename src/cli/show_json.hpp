// --json: what a subcommand prints for other programs.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ferrite::cli {

/// On standard output; `indent` -1: in one line. JSON is UTF-8: the names of files, and texts that end within
/// a character, need not be; what is none is shown as U+FFFD.
template <class Json>
void show_json(const Json& json, int indent = 2) {
  fmt::print("{}\n", json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace ferrite::cli
