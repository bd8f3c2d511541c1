#include "models/gpt/hugging_face_llama.hpp"

#include "models/gpt/hugging_face_config.hpp"

namespace ferrite::gpt {
namespace {

struct Names {
  LlamaFamily family;
  const char *type, *class_name;
};
constexpr Names all_names[] = {{LlamaFamily::llama, "llama", "LlamaForCausalLM"},
                               {LlamaFamily::mistral, "mistral", "MistralForCausalLM"},
                               {LlamaFamily::qwen2, "qwen2", "Qwen2ForCausalLM"}};

Activation read_activation(const Config& config) {
  const std::string name = config.text("hidden_act");
  if (name.empty() || name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu;
  config.refuse(fmt::format("'hidden_act' is {}, and ferrite has \"silu\" and \"gelu_pytorch_tanh\" here",
                            in_quotes(name)));
}

/// 'rope_parameters' of transformers 5, or 'rope_theta' and 'rope_scaling' of earlier ones.
RopeConfig read_rope(const Config& config) {
  const bool is_new = config.find("rope_parameters") != nullptr;
  const Config given = config.part(is_new ? "rope_parameters" : "rope_scaling");
  RopeConfig rope{given.number("rope_theta", config.number("rope_theta", 10000.0))};
  given.require("partial_rotary_factor", 1.0);
  config.require("partial_rotary_factor", 1.0);
  const std::string type = given.text(given.find("rope_type") ? "rope_type" : "type");
  if (type.empty() && given.find("factor"))
    config.refuse("the scaling of rotations has a 'factor' and no 'rope_type' that says how");
  if (type.empty() || type == "default") return rope;
  if (type == "linear") return rope.with_scaling(RopeScaling::linear(given.number("factor")));
  if (type != "llama3")
    config.refuse(fmt::format("'rope_type' is {}, and ferrite has \"default\", \"linear\" and \"llama3\"",
                              in_quotes(type)));
  return rope.with_scaling(RopeScaling{RopeScaling::Kind::llama3, given.number("factor"),
                                       given.number("low_freq_factor"), given.number("high_freq_factor"),
                                       given.size("original_max_position_embeddings")});
}

/// Queries, keys and values, and the rest, have biases or not.
void read_biases(const Config& config, LlamaFamily family, nn::GptConfig& model) {
  model.bias = false;
  if (family == LlamaFamily::qwen2) model.qkv_bias = true;
  if (family != LlamaFamily::llama) return;
  model.bias = config.flag("attention_bias", false);
  if (config.flag("mlp_bias", false) != model.bias)
    config.refuse(
        "'attention_bias' and 'mlp_bias' differ, and ferrite has biases everywhere or nowhere here");
}

std::int64_t read_window(const Config& config, LlamaFamily family) {
  if (family == LlamaFamily::qwen2) config.require("use_sliding_window", false);
  if (family != LlamaFamily::mistral) return 0;
  constexpr std::int64_t usual = 4096;  // where the key is absent; null is none
  return config.size_or("sliding_window", config.has("sliding_window") ? 0 : usual);
}

nlohmann::ordered_json scaling_text(const RopeScaling& scaling) {
  if (scaling.kind == RopeScaling::Kind::linear) return {{"factor", scaling.factor}, {"rope_type", "linear"}};
  return {{"factor", scaling.factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"original_max_position_embeddings", scaling.original_context},
          {"rope_type", "llama3"}};
}

LlamaFamily family_of(const nn::GptConfig& model) {
  const bool own_bias = model.qkv_bias.value_or(model.bias) != model.bias;
  if (own_bias && (model.bias || model.window > 0))
    throw ValueError(
        "[gpt export] biases of queries, keys and values alone, together with other biases or a window: "
        "transformers has no such model");
  if (model.window > 0 && model.bias)
    throw ValueError("[gpt export] a window and biases: transformers has no such model");
  return own_bias ? LlamaFamily::qwen2 : model.window > 0 ? LlamaFamily::mistral : LlamaFamily::llama;
}

}  // namespace

std::optional<LlamaFamily> llama_family(std::string_view type, std::string_view class_name) {
  // As transformers does it: the class says something only where there is no type.
  for (const Names& names : all_names)
    if (type.empty() ? class_name == names.class_name : type == names.type) return names.family;
  return std::nullopt;
}

nn::GptConfig read_llama(const Config& config, LlamaFamily family) {
  nn::GptConfig model = nn::GptConfig::llama();
  model.vocab = config.size("vocab_size");
  model.context = config.size("max_position_embeddings");
  model.layers = config.size("num_hidden_layers");
  model.heads = config.size("num_attention_heads");
  model.dim = config.size("hidden_size");
  model.hidden = config.size("intermediate_size");
  model.kv_heads = config.size_or("num_key_value_heads", model.heads);
  model.head_width = config.size_or("head_dim", 0);
  if (model.kv_heads == model.heads) model.kv_heads = 0;
  if (model.head_width * model.heads == model.dim) model.head_width = 0;
  model.activation = read_activation(config);
  model.eps = config.number("rms_norm_eps", 1e-6);
  model.rope = read_rope(config);
  model.window = read_window(config, family);
  model.tied = config.flag("tie_word_embeddings", false);
  read_biases(config, family, model);
  config.require("pretraining_tp", 1);
  try {
    model.check();
  } catch (const ValueError& error) {
    config.refuse(error.what());
  }
  return model;
}

bool is_llama(const nn::GptConfig& model) {
  return model.rope && model.rope->pairs == RopePairs::halves && model.norm == nn::NormKind::rms &&
         model.gated && (model.activation == Activation::silu || model.activation == Activation::gelu);
}

std::string llama_text(const nn::GptConfig& model) {
  const LlamaFamily family = family_of(model);
  const Names& names = all_names[static_cast<std::size_t>(family)];
  nlohmann::ordered_json object{
      {"architectures", {names.class_name}},
      {"attention_dropout", model.dropout},
      {"head_dim", model.width_of_head()},
      {"hidden_act", model.activation == Activation::silu ? "silu" : "gelu_pytorch_tanh"},
      {"hidden_size", model.dim},
      {"initializer_range", 0.02},
      {"intermediate_size", model.hidden_width()},
      {"max_position_embeddings", model.context},
      {"model_type", names.type},
      {"num_attention_heads", model.heads},
      {"num_hidden_layers", model.layers},
      {"num_key_value_heads", model.key_heads()},
      {"rms_norm_eps", model.eps},
      {"rope_scaling", nullptr},
      {"rope_theta", model.rope->theta},
      {"tie_word_embeddings", model.tied},
      {"torch_dtype", dtype_name(model.dtype)},
      {"vocab_size", model.vocab}};
  if (model.rope->scaling) object["rope_scaling"] = scaling_text(*model.rope->scaling);
  if (family == LlamaFamily::llama) object["attention_bias"] = object["mlp_bias"] = model.bias;
  if (family == LlamaFamily::mistral) object["sliding_window"] = model.window;
  if (family == LlamaFamily::qwen2) object["use_sliding_window"] = false;
  return object.dump(2) + "\n";
}

}  // namespace ferrite::gpt
