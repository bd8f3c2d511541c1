// The config of a Gpt: its checks, its size and its text.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/nn/gpt_config.hpp"

namespace ferrite::nn {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
using Member = std::pair<const char*, T GptConfig::*>;

/// The members that are sizes: of every model, and those that may be 0.
constexpr Member<std::int64_t> sizes[] = {{"vocab", &GptConfig::vocab},
                                          {"context", &GptConfig::context},
                                          {"layers", &GptConfig::layers},
                                          {"heads", &GptConfig::heads},
                                          {"dim", &GptConfig::dim}};
constexpr Member<std::int64_t> further_sizes[] = {{"hidden", &GptConfig::hidden},
                                                  {"kv_heads", &GptConfig::kv_heads},
                                                  {"head_width", &GptConfig::head_width},
                                                  {"window", &GptConfig::window}};
constexpr Member<bool> switches[] = {{"gated", &GptConfig::gated},
                                     {"bias", &GptConfig::bias},
                                     {"tied", &GptConfig::tied},
                                     {"quantized", &GptConfig::quantized}};

constexpr const char *norm_names[] = {"layer", "rms"}, *scaling_names[] = {"linear", "llama3"};

/// The place of a text among names.
template <std::size_t count>
std::size_t chosen(const Json& json, const char* const (&names)[count], const char* what) {
  const auto text = json.get<std::string>();
  for (std::size_t i = 0; i < count; ++i)
    if (text == names[i]) return i;
  throw ValueError(fmt::format("{} \"{}\": must be one of {}", what, text, fmt::join(names, ", ")));
}

/// get() would cut off fractions.
std::int64_t size_in(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_integer())
    throw ValueError(fmt::format("{} {}: must be an integer", key, value.dump()));
  return value.get<std::int64_t>();
}

/// Every key must be among those that were looked for.
void check_keys(const Json& json, std::span<const std::string_view> known) {
  for (const auto& item : json.items())
    if (std::ranges::find(known, item.key()) == known.end())
      throw ValueError(fmt::format("\"{}\" is not known: a newer ferrite may have written it", item.key()));
}

Json text_of(const RopeConfig& rope) {
  Json json{{"theta", rope.theta}, {"pairs", to_string(rope.pairs)}};
  if (rope.scaling) {
    const RopeScaling& s = *rope.scaling;
    Json& scaling = json["scaling"];
    scaling["kind"] = scaling_names[static_cast<std::size_t>(s.kind)];
    scaling["factor"] = s.factor;
    if (s.kind == RopeScaling::Kind::llama3) {
      scaling["low_freq_factor"] = s.low_freq_factor;
      scaling["high_freq_factor"] = s.high_freq_factor;
      scaling["original_context"] = s.original_context;
    }
  }
  return json;
}

RopeScaling scaling_from(const Json& json) {
  constexpr std::string_view known[] = {"kind", "factor", "low_freq_factor", "high_freq_factor",
                                        "original_context"};
  check_keys(json, known);
  RopeScaling scaling;
  scaling.kind = static_cast<RopeScaling::Kind>(chosen(json.at("kind"), scaling_names, "kind"));
  json.at("factor").get_to(scaling.factor);
  if (scaling.kind == RopeScaling::Kind::llama3) {
    json.at("low_freq_factor").get_to(scaling.low_freq_factor);
    json.at("high_freq_factor").get_to(scaling.high_freq_factor);
    scaling.original_context = size_in(json, "original_context");
  }
  return scaling;
}

RopeConfig rope_from(const Json& json) {
  constexpr std::string_view known[] = {"theta", "pairs", "scaling"};
  check_keys(json, known);
  constexpr const char* names[] = {"halves", "neighbours"};
  RopeConfig rope;
  json.at("theta").get_to(rope.theta);
  rope.pairs = static_cast<RopePairs>(chosen(json.at("pairs"), names, "pairs"));
  if (json.contains("scaling")) rope.scaling = scaling_from(json["scaling"]);
  return rope;
}

GptConfig config_from(const Json& json) {
  GptConfig config;
  std::vector<std::string_view> known{"dropout", "dtype"};
  for (const auto& [key, member] : sizes) {
    config.*member = size_in(json, key);
    known.push_back(key);
  }
  json.at("dropout").get_to(config.dropout);
  config.dtype = dtype_from_string(json.at("dtype").get<std::string>());
  const auto has = [&](const char* key) {
    known.push_back(key);
    return json.contains(key);
  };
  for (const auto& [key, member] : further_sizes)
    if (has(key)) config.*member = size_in(json, key);
  for (const auto& [key, member] : switches)
    if (has(key)) json.at(key).get_to(config.*member);
  if (has("qkv_bias")) config.qkv_bias = json["qkv_bias"].get<bool>();
  if (has("activation")) {
    std::vector<std::string> names;
    const auto given = json["activation"].get<std::string>();
    for (int i = 0; i < count_of(Activation{}); ++i)
      names.emplace_back(to_string(static_cast<Activation>(i)));
    const auto found = std::ranges::find(names, given);
    if (found == names.end())
      throw ValueError(fmt::format("activation \"{}\": must be one of {}", given, fmt::join(names, ", ")));
    config.activation = static_cast<Activation>(found - names.begin());
  }
  if (has("norm")) config.norm = static_cast<NormKind>(chosen(json["norm"], norm_names, "norm"));
  if (has("eps")) json["eps"].get_to(config.eps);
  if (has("rope")) config.rope = rope_from(json["rope"]);
  check_keys(json, known);
  return config;
}

}  // namespace

TransformerBlockConfig GptConfig::block() const {
  return TransformerBlockConfig{dim, heads}
      .with_hidden(hidden)
      .with_causal(true)
      .with_activation(activation)
      .with_dropout(dropout)
      .with_dtype(dtype)
      .with_norm(norm)
      .with_eps(eps)
      .with_gated(gated)
      .with_kv_heads(kv_heads)
      .with_head_width(head_width)
      .with_window(window)
      .with_rope(rope)
      .with_bias(bias)
      .with_qkv_bias(qkv_bias);
}

std::int64_t GptConfig::parameter_count() const {
  const auto linear = [](std::int64_t in, std::int64_t out, bool has_bias) {
    return in * out + (has_bias ? out : 0);
  };
  const std::int64_t attending = heads * width_of_head(), shared = key_heads() * width_of_head();
  const std::int64_t one_norm = norm == NormKind::layer ? 2 * dim : dim;
  const std::int64_t block = linear(dim, attending + 2 * shared, qkv_bias.value_or(bias)) +
                             linear(attending, dim, bias) + linear(hidden_width(), dim, bias) +
                             (gated ? 2 : 1) * linear(dim, hidden_width(), bias) + 2 * one_norm;
  return vocab * dim * (tied ? 1 : 2) + (rope ? 0 : context * dim) + layers * block + one_norm;
}

void GptConfig::check() const {
  for (const auto& [name, member] : sizes)
    if (this->*member < 1)
      throw ValueError(fmt::format("[GptConfig] {} {}: must be at least 1", name, this->*member));
  for (const auto& [name, member] : further_sizes)
    if (this->*member < 0)
      throw ValueError(fmt::format("[GptConfig] {} {}: must not be negative", name, this->*member));
  if (head_width == 0 && dim % heads != 0)
    throw ValueError(fmt::format("[GptConfig] dim {} and {} heads: heads must divide dim", dim, heads));
  if (heads % key_heads() != 0)
    throw ValueError(
        fmt::format("[GptConfig] {} heads and kv_heads {}: kv_heads must divide heads", heads, kv_heads));
  if (rope && width_of_head() % 2 != 0)
    throw ValueError(
        fmt::format("[GptConfig] heads of {} elements: rope needs an even number", width_of_head()));
  if (rope) rope->check();
  if (!(dropout >= 0 && dropout <= 1))
    throw ValueError(fmt::format("[GptConfig] dropout {}: must lie in [0, 1]", dropout));
  if (!(eps > 0)) throw ValueError(fmt::format("[GptConfig] eps {}: must be above 0", eps));
  if (!is_floating(dtype))
    throw ValueError(fmt::format("[GptConfig] dtype {}: must be floating", to_string(dtype)));
}

std::string GptConfig::to_json() const {
  const GptConfig usual;
  Json json;
  for (const auto& [name, member] : sizes) json[name] = this->*member;
  json["dropout"] = dropout;
  json["dtype"] = to_string(dtype);
  const auto add = [&](const auto& members) {
    for (const auto& [name, member] : members)
      if (this->*member != usual.*member) json[name] = this->*member;
  };
  add(further_sizes);
  add(switches);
  if (qkv_bias) json["qkv_bias"] = *qkv_bias;
  if (activation != usual.activation) json["activation"] = to_string(activation);
  if (norm != usual.norm) json["norm"] = norm_names[static_cast<std::size_t>(norm)];
  if (eps != usual.eps) json["eps"] = eps;
  if (rope) json["rope"] = text_of(*rope);
  return json.dump();
}

GptConfig GptConfig::from_json(std::string_view text, std::string_view name) {
  try {
    const GptConfig config = config_from(Json::parse(text));
    config.check();
    return config;
  } catch (const Json::exception& e) {
    throw ParseError(fmt::format("[GptConfig] {}: is not the config of a Gpt: {}", name, e.what()));
  } catch (const Error& e) {
    throw ParseError(fmt::format("[GptConfig] {}: {}", name, e.what()));
  }
}

}  // namespace ferrite::nn
