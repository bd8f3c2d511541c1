// Every way in which a folder of weights can be wrong.
#include "gpt_test.hpp"

namespace ferrite::testing {
namespace {

TEST_F(HuggingFace, MissingUnknownAndMisshapenTensorsAreNamed) {
  SafeTensors file = weights();
  file.tensors.erase("transformer.h.1.ln_2.bias");
  file.tensors["transformer.h.2.extra"] = tensor(DType::f32, {1}, 0);
  file.tensors["score\x1b[31m.weight"] = tensor(DType::f32, {1}, 0);
  save(file);
  expect_refused<ValueError>(
      {hf.string(), R"(missing "h.1.ln_2.bias"; unknown "h.2.extra", "score\x1b[31m.weight")"});

  file = weights();
  file.tensors["transformer.h.0.mlp.c_fc.weight"] = tensor(DType::f32, {4 * dim, dim}, 0);
  save(file);
  expect_refused<ShapeError>({R"("h.0.mlp.c_fc.weight" has shape [32, 8] and needs [8, 32])"});

  file = weights();
  file.tensors["transformer.ln_f.bias"] =
      HostTensor::from(std::span<const double>({1, 2, 3, 4, 5, 6, 7, 8}), {dim});
  save(file);
  expect_refused<DTypeError>({R"("ln_f.bias" is f64 and needs to be f32, f16 or bf16)"});

  save(weights("other."));
  expect_refused<ValueError>({"missing", "unknown", "and 20 more"});
}

TEST_F(HuggingFace, ValuesThatDoNotFitAreRefused) {
  SafeTensors file = weights();
  const std::vector<float> large(dim, 1e6F);
  file.tensors["transformer.ln_f.bias"] = HostTensor::from(std::span<const float>(large), {dim});
  save(file);
  expect_refused<ValueError>({R"("ln_f.bias" has values beyond f16)"}, ImportConfig{}.with_dtype(DType::f16));
  expect_refused<DTypeError>({"must be f32, f16 or bf16"}, ImportConfig{}.with_dtype(DType::f64));
  gpt::import_hugging_face(hf, ours, ImportConfig{}.with_dtype(DType::bf16));
}

TEST_F(HuggingFace, DamagedFilesAreRefused) {
  save(weights());
  const std::string whole = slurp(hf / "model.safetensors");
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() - 1}) {
    spill(hf / "model.safetensors", whole.substr(0, size));
    expect_refused<ParseError>({"model.safetensors"});
  }
  spill(hf / "model.safetensors", whole);
  for (const std::string text : {"", "{", "[]", "3", "{\"n_embd\": 8", "\xff"}) {
    spill(hf / "config.json", text);
    expect_refused<ParseError>({"config.json: must be a JSON object"});
  }
}

TEST_F(HuggingFace, ConfigsOfOtherModelsSayWhatIsMissing) {
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json json = config();
    json[key] = value;
    save(weights(), json);
  };
  with("n_layer", nullptr);
  expect_refused<ParseError>({"config.json: has no 'n_layer'"});
  for (const nlohmann::json& bad : {nlohmann::json(0), nlohmann::json(-1), nlohmann::json(1e300),
                                    nlohmann::json("8"), nlohmann::json(UINT64_MAX)}) {
    with("n_embd", bad);
    expect_refused<ParseError>({"'n_embd' must be 1 to 2147483647"});
  }
  with("n_layer", 2'000'000'000);
  expect_refused<ValueError>({"is said to have 2000000000 layers, and has 28 tensors"});
  with("n_head", 3);
  expect_refused<ValueError>({"n_embd 8 and n_head 3"});
  with("vocab_size", 11);
  expect_refused<ShapeError>({R"("wte.weight" has shape [10, 8] and needs [11, 8])"});
  with("activation_function", "relu");
  expect_refused<ValueError>({"'activation_function'", "relu", "gelu_new"});
  with("scale_attn_by_inverse_layer_idx", true);
  expect_refused<ValueError>({"'scale_attn_by_inverse_layer_idx'"});
  with("layer_norm_epsilon", 1e-6);
  expect_refused<ValueError>({"'layer_norm_epsilon'"});
  with("n_inner", 4 * dim);
  gpt::import_hugging_face(hf, ours);
  fs::remove(ours);

  spill(hf / "config.json", R"({"architectures": ["BertModel"], "model_type": "bert"})");
  expect_refused<ValueError>({R"("BertModel" is not a GPT-2, a Llama)"});
  spill(hf / "config.json", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "bert"})");
  expect_refused<ValueError>({R"("bert" is not a GPT-2, a Llama)"});
  spill(hf / "config.json", "{}");
  expect_refused<ValueError>({"a model without a type is not a GPT-2"});
  // Said before the weights are looked at.
  fs::remove(hf / "model.safetensors");
  spill(hf / "config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})");
  expect_refused<ParseError>({"config.json: has no 'vocab_size'"});
}

TEST_F(HuggingFace, LlamasWithPartsThatFerriteLacksAreRefused) {
  const nlohmann::json plain{
      {"model_type", "llama"},       {"vocab_size", 10},       {"hidden_size", 8},
      {"intermediate_size", 12},     {"num_hidden_layers", 1}, {"num_attention_heads", 2},
      {"max_position_embeddings", 6}};
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json json = plain;
    json[key] = value;
    spill(hf / "config.json", json.dump());
  };
  with("hidden_act", "relu");
  expect_refused<ValueError>({"'hidden_act'", "relu", "silu"});
  with("rope_scaling", {{"type", "yarn"}, {"factor", 2.0}});
  expect_refused<ValueError>({"'rope_type'", "yarn", "llama3"});
  with("rope_scaling", {{"rope_type", "llama3"}, {"factor", 2.0}});
  expect_refused<ParseError>({"has no 'low_freq_factor'"});
  with("rope_scaling", {{"low_freq_factor", 1.0}, {"factor", 2.0}});
  expect_refused<ValueError>({"'factor'", "'rope_type'"});
  with("rope_scaling", 3);
  expect_refused<ParseError>({"'rope_scaling' must be an object"});
  with("rope_parameters", {{"rope_theta", -1.0}});
  expect_refused<ValueError>({"theta -1"});
  with("partial_rotary_factor", 0.5);
  expect_refused<ValueError>({"'partial_rotary_factor'"});
  with("mlp_bias", true);
  expect_refused<ValueError>({"'mlp_bias'"});
  with("tie_word_embeddings", "yes");
  expect_refused<ParseError>({"'tie_word_embeddings' must be true or false"});
  with("num_key_value_heads", 3);
  expect_refused<ValueError>({"kv_heads must divide heads"});
  with("head_dim", 3);
  expect_refused<ValueError>({"rope needs an even number"});
  with("hidden_size", 9);
  expect_refused<ValueError>({"heads must divide dim"});
  nlohmann::json qwen = plain;
  qwen["model_type"] = "qwen2";
  qwen["use_sliding_window"] = true;
  spill(hf / "config.json", qwen.dump());
  expect_refused<ValueError>({"'use_sliding_window'"});
  // Every tensor must be there; without config.json it is no Llama.
  spill(hf / "config.json", plain.dump());
  write_safetensors(hf / "model.safetensors",
                    {{}, {{"model.embed_tokens.weight", tensor(DType::f32, {10, 8}, 0)}}});
  expect_refused<ValueError>({R"(missing "layers.0.input_layernorm.weight")"});
  fs::remove(hf / "config.json");
  expect_refused<ValueError>({R"(missing the matrix "wte.weight")", "need their config.json"});
}

TEST_F(HuggingFace, MixturesAreNotExported) {
  const auto expect_not_exported = [&](const GptConfig& model, std::string_view part) {
    write_safetensors(ours,
                      {{{"gpt", model.to_json()}}, {{"tokens.weight", tensor(DType::f32, {2048, 8}, 0)}}});
    expect_error<ValueError>([&] { gpt::export_hugging_face(ours, back); }, {"[gpt export]", part});
  };
  const GptConfig plain{vocab, context, 1, heads, dim};
  expect_not_exported(plain.with_gated(true), "neither the parts of a GPT-2 nor those of a Llama");
  const GptConfig llama =
      GptConfig::llama().with_vocab(vocab).with_context(context).with_layers(1).with_heads(2).with_dim(8);
  expect_not_exported(llama.with_rope(RopeConfig{}.with_pairs(RopePairs::neighbours)), "neither");
  expect_not_exported(llama.with_window(3).with_bias(true), "a window and biases");
  expect_not_exported(llama.with_window(3).with_qkv_bias(true), "together with other biases or a window");
}

TEST_F(HuggingFace, ASourceIsNeverReplaced) {
  save(weights());
  expect_error<ValueError>([&] { gpt::import_hugging_face(hf, hf / "model.safetensors"); },
                           {"source itself"});
  gpt::import_hugging_face(hf, folder / "model.safetensors");
  expect_error<ValueError>([&] { gpt::export_hugging_face(folder / "model.safetensors", folder / "."); },
                           {"source itself"});
  EXPECT_FALSE(fs::exists(folder / "config.json"));
}

}  // namespace
}  // namespace ferrite::testing
