#include "ferrite/models/gpt/description.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/core/error.hpp"

namespace ferrite::gpt {
namespace {

struct Size {
  const char* name;
  std::int64_t Description::*member;
};
constexpr Size sizes[] = {{"vocab", &Description::vocab},
                          {"context", &Description::context},
                          {"layers", &Description::layers},
                          {"heads", &Description::heads},
                          {"dim", &Description::dim}};

[[noreturn]] void reject(std::string_view name, std::string_view rule) {
  throw ParseError(fmt::format("[gpt] {}, metadata \"gpt\": {}", name, rule));
}

}  // namespace

std::int64_t Description::parameter_count() const {
  return (vocab + context) * dim + layers * (12 * dim * dim + 13 * dim) + 2 * dim;
}

void Description::check() const {
  for (const Size& size : sizes) {
    const std::int64_t value = this->*size.member;
    if (value < 1 || value > INT32_MAX)
      throw ValueError(fmt::format("[gpt] {} {}: must be 1 to {}", size.name, value, INT32_MAX));
  }
  if (dim % heads != 0)
    throw ValueError(fmt::format("[gpt] dim {} and {} heads: heads must divide dim", dim, heads));
  if (!(dropout >= 0 && dropout <= 1))
    throw ValueError(fmt::format("[gpt] dropout {}: must be 0 to 1", dropout));
  if (!is_floating(dtype))
    throw ValueError(fmt::format("[gpt] dtype {}: must be floating", to_string(dtype)));
}

std::string Description::to_json() const {
  nlohmann::ordered_json json;
  for (const Size& size : sizes) json[size.name] = this->*size.member;
  json["dropout"] = dropout;
  json["dtype"] = to_string(dtype);
  return json.dump();
}

Description Description::from_json(std::string_view text, std::string_view name) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) reject(name, "must be a JSON object");
  if (json.size() != std::size(sizes) + 2)
    reject(name, "must have vocab, context, layers, heads, dim, dropout and dtype, and nothing else");
  const auto member = [&](const char* key) -> const nlohmann::json& {
    const auto found = json.find(key);
    if (found == json.end()) reject(name, fmt::format("has no '{}'", key));
    return *found;
  };
  Description out;
  for (const Size& size : sizes) {
    if (!member(size.name).is_number_integer()) reject(name, fmt::format("'{}' must be a number", size.name));
    out.*size.member = member(size.name).get<std::int64_t>();
  }
  if (!member("dropout").is_number()) reject(name, "'dropout' must be a number");
  out.dropout = member("dropout").get<double>();
  if (!member("dtype").is_string()) reject(name, "'dtype' must be a name");
  try {
    out.dtype = dtype_from_string(member("dtype").get<std::string>());
    out.check();
  } catch (const Error& e) {
    reject(name, e.what());
  }
  return out;
}

}  // namespace ferrite::gpt
