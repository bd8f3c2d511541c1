// Checks of states, with messages that name every tensor that does not fit.
#include "ferrite/nn/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

/// "a, b and 5 more"
std::string listed(std::span<const std::string> items) {
  constexpr std::size_t shown = 8;
  const std::size_t n = std::min(items.size(), shown);
  std::string text =
      fmt::format("{}", fmt::join(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(n), ", "));
  return items.size() > shown ? fmt::format("{} and {} more", text, items.size() - shown) : text;
}

bool converts(DType from, DType to) { return from == to || (is_floating(from) && is_floating(to)); }

}  // namespace

std::string quoted_names(std::span<const std::string> names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(fmt::format("'{}'", name));
  return listed(quoted);
}

void detail::throw_listed_twice(std::string_view what, const std::string& first, const std::string& second) {
  throw ValueError(
      fmt::format("[{}] one parameter is listed twice, as '{}' and '{}': list it once", what, first, second));
}

void detail::throw_two_leaves(std::string_view what, const std::string& first, const std::string& second) {
  throw ValueError(
      fmt::format("[{}] '{}' and '{}' are two leaves over the same memory: for tied weights use one leaf in "
                  "both places, else make the second one with parameter(clone(x), name)",
                  what, first, second));
}

void check_state(std::string_view what, std::span<const StateEntry> needed, const NamedTensors& given) {
  std::vector<std::string> missing, unexpected, shapes, dtypes;
  std::map<std::string_view, const StateEntry*> by_name;
  for (const StateEntry& entry : needed) {
    by_name[entry.name] = &entry;
    const auto found = given.find(entry.name);
    if (found == given.end()) {
      missing.push_back(fmt::format("'{}'", entry.name));
    } else if (!(found->second.shape() == entry.meta.shape)) {
      shapes.push_back(fmt::format("'{}' has shape {} and needs {}", entry.name,
                                   to_string(found->second.shape()), to_string(entry.meta.shape)));
    } else if (!converts(found->second.dtype(), entry.meta.dtype)) {
      dtypes.push_back(fmt::format("'{}' is {} and needs {}", entry.name, to_string(found->second.dtype()),
                                   to_string(entry.meta.dtype)));
    }
  }
  for (const auto& item : given)
    if (!by_name.contains(item.first)) unexpected.push_back(fmt::format("'{}'", item.first));

  std::string names;
  if (!missing.empty()) names += fmt::format("missing {}", listed(missing));
  if (!unexpected.empty())
    names += fmt::format("{}unexpected {}", names.empty() ? "" : "; ", listed(unexpected));
  if (!names.empty()) throw ValueError(fmt::format("[{}] {}", what, names));
  if (!shapes.empty()) throw ShapeError(fmt::format("[{}] {}", what, listed(shapes)));
  if (!dtypes.empty()) throw DTypeError(fmt::format("[{}] {}", what, listed(dtypes)));
}

NamedTensors with_prefix(std::string_view prefix, const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result.emplace(std::string(prefix) + name, tensor);
  return result;
}

NamedTensors strip_prefix(std::string_view prefix, const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix)) result.emplace(name.substr(prefix.size()), tensor);
  return result;
}

}  // namespace ferrite
