#include "models/gpt/hugging_face_config.hpp"

#include <algorithm>

#include "models/gpt/config_reader.hpp"
#include "models/gpt/hugging_face_llama.hpp"

namespace ferrite::gpt {
namespace {

/// The name of the model's class if there is one, else its type.
std::string kind_of(const Config& config) {
  if (const json* classes = config.find("architectures"); classes && classes->is_array() && !classes->empty())
    if (classes->front().is_string()) return classes->front().get<std::string>();
  return config.text("model_type");
}

void check_is_gpt2(const Config& config) {
  // As transformers does it: the class says something only where there is no type.
  const std::string type = config.text("model_type"), kind = kind_of(config);
  const bool has_its_class = kind == "GPT2LMHeadModel" || kind == "GPT2Model";
  if (type.empty() ? has_its_class : type == "gpt2") return;
  const std::string& name = has_its_class ? type : kind;
  config.refuse(fmt::format("{} is not a GPT-2, a Llama, a Mistral or a Qwen2: only these can be imported",
                            name.empty() ? "a model without a type" : in_quotes(name)));
}

/// Settings of transformers that change what a GPT-2 computes.
void check_settings(const Config& config, std::int64_t dim) {
  // Two names of the same function.
  if (config.text("activation_function") != "gelu_pytorch_tanh")
    config.require("activation_function", "gelu_new");
  config.require("layer_norm_epsilon", 1e-5);
  config.require("n_inner", 4 * dim);
  config.require("scale_attn_weights", true);
  config.require("scale_attn_by_inverse_layer_idx", false);
  config.require("add_cross_attention", false);
}

/// Has all parts of a GPT-2, so that only sizes differ.
void check_is_gpt2(const nn::GptConfig& model) {
  const nn::GptConfig plain{model.vocab, model.context, model.layers, model.heads,
                            model.dim,   model.dropout, model.dtype};
  // Sizes may be written out where they are those that 0 stands for.
  nn::GptConfig same = model;
  if (model.hidden_width() == plain.hidden_width()) same.hidden = 0;
  if (model.key_heads() == plain.key_heads()) same.kv_heads = 0;
  if (model.width_of_head() == plain.width_of_head()) same.head_width = 0;
  if (model.qkv_bias == model.bias) same.qkv_bias.reset();
  if (!(same == plain))
    throw ValueError(
        "[gpt export] the model has neither the parts of a GPT-2 nor those of a Llama, and transformers has "
        "no "
        "such mixture");
}

}  // namespace

nn::GptConfig read_config(const std::filesystem::path& path) {
  const Config config(path);
  if (const auto family = llama_family(config.text("model_type"), kind_of(config)))
    return read_llama(config, *family);
  check_is_gpt2(config);
  nn::GptConfig model;
  model.vocab = config.size("vocab_size");
  model.context = config.size("n_positions");
  model.layers = config.size("n_layer");
  model.heads = config.size("n_head");
  model.dim = config.size("n_embd");
  check_settings(config, model.dim);
  if (model.dim % model.heads != 0)
    config.refuse(fmt::format("n_embd {} and n_head {}: heads must divide it", model.dim, model.heads));
  return model;
}

std::string dtype_name(DType dtype) {
  return dtype == DType::f32 ? "float32" : dtype == DType::f16 ? "float16" : "bfloat16";
}

std::string config_text(const nn::GptConfig& model) {
  if (is_llama(model)) return llama_text(model);
  check_is_gpt2(model);
  // The token <|endoftext|>: GPT-2's, or the last of a smaller vocabulary, where our tokenizers have it.
  const std::int64_t end_of_text = std::min<std::int64_t>(50256, model.vocab - 1);
  const nlohmann::ordered_json object{{"activation_function", "gelu_new"},
                                      {"architectures", {"GPT2LMHeadModel"}},
                                      {"attn_pdrop", model.dropout},
                                      {"bos_token_id", end_of_text},
                                      {"embd_pdrop", model.dropout},
                                      {"eos_token_id", end_of_text},
                                      {"initializer_range", 0.02},
                                      {"layer_norm_epsilon", 1e-5},
                                      {"model_type", "gpt2"},
                                      {"n_embd", model.dim},
                                      {"n_head", model.heads},
                                      {"n_inner", nullptr},
                                      {"n_layer", model.layers},
                                      {"n_positions", model.context},
                                      {"resid_pdrop", model.dropout},
                                      {"tie_word_embeddings", true},
                                      {"torch_dtype", dtype_name(model.dtype)},
                                      {"vocab_size", model.vocab}};
  return object.dump(2) + "\n";
}

}  // namespace ferrite::gpt
