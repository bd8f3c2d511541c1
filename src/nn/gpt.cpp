// The config of a Gpt: its checks, its size and its text.
#include "ferrite/nn/gpt.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ferrite::nn {
namespace {

using Json = nlohmann::ordered_json;

/// The members that are sizes.
constexpr std::pair<const char*, std::int64_t GptConfig::*> sizes[] = {{"vocab", &GptConfig::vocab},
                                                                       {"context", &GptConfig::context},
                                                                       {"layers", &GptConfig::layers},
                                                                       {"heads", &GptConfig::heads},
                                                                       {"dim", &GptConfig::dim}};

}  // namespace

std::int64_t GptConfig::parameter_count() const {
  const std::int64_t block = 12 * dim * dim + 13 * dim;  // qkv, proj, up, down with biases, and two norms
  return (vocab + context) * dim + layers * block + 2 * dim;
}

void GptConfig::check() const {
  for (const auto& [name, member] : sizes)
    if (this->*member < 1)
      throw ValueError(fmt::format("[GptConfig] {} {}: must be at least 1", name, this->*member));
  if (dim % heads != 0)
    throw ValueError(fmt::format("[GptConfig] dim {} and {} heads: heads must divide dim", dim, heads));
  if (!(dropout >= 0 && dropout <= 1))
    throw ValueError(fmt::format("[GptConfig] dropout {}: must lie in [0, 1]", dropout));
  if (!is_floating(dtype))
    throw ValueError(fmt::format("[GptConfig] dtype {}: must be floating", to_string(dtype)));
}

std::string GptConfig::to_json() const {
  Json json;
  for (const auto& [name, member] : sizes) json[name] = this->*member;
  json["dropout"] = dropout;
  json["dtype"] = to_string(dtype);
  if (quantized) json["quantized"] = true;
  return json.dump();
}

GptConfig GptConfig::from_json(std::string_view text, std::string_view name) {
  GptConfig config;
  try {
    const Json json = Json::parse(text);
    for (const auto& [key, member] : sizes) json.at(key).get_to(config.*member);
    json.at("dropout").get_to(config.dropout);
    config.dtype = dtype_from_string(json.at("dtype").get<std::string>());
    config.quantized = json.value("quantized", false);
    config.check();
  } catch (const Json::exception& e) {
    throw ParseError(fmt::format("[GptConfig] {}: is not the config of a Gpt: {}", name, e.what()));
  } catch (const Error& e) {
    throw ParseError(fmt::format("[GptConfig] {}: {}", name, e.what()));
  }
  return config;
}

}  // namespace ferrite::nn
