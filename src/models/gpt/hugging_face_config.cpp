#include "models/gpt/hugging_face_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "ferrite/core/error.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/format.hpp"

namespace ferrite::gpt {
namespace {

using io_detail::in_quotes;
using nlohmann::json;

/// Keys with errors that name the file. Absent and null are the same.
class Config {
 public:
  explicit Config(const std::filesystem::path& path) : name_(path.string()) {
    json_ = json::parse(MappedFile::open(path)->text(), nullptr, false);
    if (!json_.is_object())
      throw ParseError(fmt::format("[gpt import] {}: must be a JSON object in UTF-8", name_));
  }

  const json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  std::int64_t size(const char* key) const {
    const json* value = find(key);
    if (!value) throw ParseError(fmt::format("[gpt import] {}: has no '{}'", name_, key));
    // get() would wrap around beyond 63 bits; no size is as large as a thousandth of that.
    if (!value->is_number_integer() || value->get<double>() < 1 || value->get<double>() > INT32_MAX)
      throw ParseError(fmt::format("[gpt import] {}: '{}' must be 1 to {}", name_, key, INT32_MAX));
    return value->get<std::int64_t>();
  }
  std::string text(const char* key) const {
    const json* value = find(key);
    return value && value->is_string() ? value->get<std::string>() : std::string();
  }
  /// The model differs from a GPT-2 unless the key has this value, or is absent.
  void require(const char* key, const json& needed) const {
    const json* value = find(key);
    if (value && *value != needed)
      refuse(fmt::format("'{}' is {}, and ferrite's GPT-2 has {}", key, in_quotes(value->dump()),
                         needed.dump()));
  }
  [[noreturn]] void refuse(std::string_view reason) const {
    throw ValueError(fmt::format("[gpt import] {}: {}", name_, reason));
  }

 private:
  std::string name_;
  json json_;
};

/// The model's class if it is named, else its type.
std::string kind_of(const Config& config) {
  if (const json* classes = config.find("architectures"); classes && classes->is_array() && !classes->empty())
    if (classes->front().is_string()) return classes->front().get<std::string>();
  return config.text("model_type");
}

[[noreturn]] void refuse_llama(const Config& config, const std::string& kind) {
  std::vector<std::string> parts{"rms_norm", "rope", "swiglu"};
  const json *heads = config.find("num_attention_heads"), *shared = config.find("num_key_value_heads");
  if (heads && shared && *heads != *shared)
    parts.push_back(fmt::format("gqa ({} heads share the keys and values of {})", in_quotes(heads->dump()),
                                in_quotes(shared->dump())));
  config.refuse(
      fmt::format("{} is a Llama: it needs {}, and ferrite has no such model yet: only GPT-2 can "
                  "be imported",
                  in_quotes(kind), fmt::join(parts, ", ")));
}

void check_kind(const Config& config) {
  const std::string kind = kind_of(config);
  if (kind == "LlamaForCausalLM" || kind == "llama") refuse_llama(config, kind);
  if (kind != "GPT2LMHeadModel" && kind != "GPT2Model" && config.text("model_type") != "gpt2")
    config.refuse(fmt::format("{} is not a GPT-2: only GPT-2 can be imported",
                              kind.empty() ? "a model without a type" : in_quotes(kind)));
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

}  // namespace

nn::GptConfig read_config(const std::filesystem::path& path) {
  const Config config(path);
  check_kind(config);
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

std::string config_text(const nn::GptConfig& model) {
  // The token <|endoftext|>: GPT-2's, or the last of a smaller vocabulary, where our tokenizers have it.
  const std::int64_t end_of_text = std::min<std::int64_t>(50256, model.vocab - 1);
  const char* dtype = model.dtype == DType::f32   ? "float32"
                      : model.dtype == DType::f16 ? "float16"
                                                  : "bfloat16";
  const nlohmann::ordered_json json{{"activation_function", "gelu_new"},
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
                                    {"torch_dtype", dtype},
                                    {"vocab_size", model.vocab}};
  return json.dump(2) + "\n";
}

}  // namespace ferrite::gpt
