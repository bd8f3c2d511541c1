// Numbers of options, of variables of the environment and in files.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace ferrite {

/// The number that all of a text is, in C's notation; nothing if it is none, or none that the type holds.
template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace ferrite
