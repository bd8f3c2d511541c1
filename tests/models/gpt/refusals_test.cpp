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
  expect_refused<ValueError>({R"("BertModel" is not a GPT-2)"});
  spill(hf / "config.json", "{}");
  expect_refused<ValueError>({"a model without a type is not a GPT-2"});
  // Said before the weights are looked at.
  fs::remove(hf / "model.safetensors");
  spill(hf / "config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                               "num_attention_heads": 32, "num_key_value_heads": 8})");
  expect_refused<ValueError>({R"("LlamaForCausalLM" is a Llama: it needs rms_norm, rope, swiglu, gqa ()",
                              "ferrite has no such model yet"});
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
