// The config of a prior-fitted network: its checks and its text.
#include "ferrite/models/pfn/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ferrite/core/error.hpp"

namespace ferrite::pfn {
namespace {

using Json = nlohmann::ordered_json;

struct Size {
  const char* name;
  std::int64_t Config::*member;
  std::int64_t least;
};
constexpr Size sizes[] = {
    {"classes", &Config::classes, 2},       {"bins", &Config::bins, 4},     {"dim", &Config::dim, 1},
    {"head_width", &Config::head_width, 1}, {"layers", &Config::layers, 1}, {"hidden", &Config::hidden, 1},
    {"registers", &Config::registers, 0}};
/// More than any network needs; a damaged file must not ask for memory without end.
constexpr std::int64_t largest_size = 1 << 20;

std::int64_t integer_in(const Json& value, const char* name) {
  if (!value.is_number_integer())
    throw ValueError(fmt::format("{} {}: must be an integer", name, value.dump()));
  return value.get<std::int64_t>();
}

Config config_from(const Json& json) {
  Config config;
  std::vector<std::string> known{"task", "offsets", "eps", "dtype"};
  const auto task = json.at("task").get<std::string>();
  config.task = task == to_string(Task::regression) ? Task::regression : Task::classification;
  if (task != to_string(config.task))
    throw ValueError(fmt::format("task \"{}\": must be classification or regression", task));
  for (const Size& size : sizes) {
    config.*size.member = integer_in(json.at(size.name), size.name);
    known.emplace_back(size.name);
  }
  config.offsets.clear();
  for (const Json& offset : json.at("offsets")) config.offsets.push_back(integer_in(offset, "offset"));
  json.at("eps").get_to(config.eps);
  config.dtype = dtype_from_string(json.at("dtype").get<std::string>());
  for (const auto& item : json.items())
    if (std::ranges::find(known, item.key()) == known.end())
      throw ValueError(fmt::format("\"{}\" is not known: a newer ferrite may have written it", item.key()));
  return config;
}

}  // namespace

void Config::check() const {
  for (const Size& size : sizes)
    if (this->*size.member < size.least || this->*size.member > largest_size)
      throw ValueError(fmt::format("[Pfn] {} {}: must lie in [{}, {}]", size.name, this->*size.member,
                                   size.least, largest_size));
  if (dim % head_width != 0)
    throw ValueError(fmt::format("[Pfn] dim {} and heads of {}: these must divide dim", dim, head_width));
  if (offsets.empty() ||
      std::ranges::any_of(offsets, [](std::int64_t o) { return o < 0 || o > largest_size; }))
    throw ValueError(fmt::format("[Pfn] offsets [{}]: needs at least one, none negative or above {}",
                                 fmt::join(offsets, ", "), largest_size));
  if (!(eps > 0)) throw ValueError(fmt::format("[Pfn] eps {}: must be above 0", eps));
  if (!is_floating(dtype))
    throw ValueError(fmt::format("[Pfn] dtype {}: must be floating", to_string(dtype)));
}

std::string Config::to_json() const {
  Json json{{"task", to_string(task)}};
  for (const Size& size : sizes) json[size.name] = this->*size.member;
  json["offsets"] = offsets;
  json["eps"] = eps;
  json["dtype"] = to_string(dtype);
  return json.dump();
}

Config Config::from_json(std::string_view text, std::string_view name) {
  try {
    const Config config = config_from(Json::parse(text));
    config.check();
    return config;
  } catch (const Json::exception& e) {
    throw ParseError(fmt::format("[Pfn] {}: is not the config of a Pfn: {}", name, e.what()));
  } catch (const Error& e) {
    throw ParseError(fmt::format("[Pfn] {}: {}", name, e.what()));
  }
}

}  // namespace ferrite::pfn
