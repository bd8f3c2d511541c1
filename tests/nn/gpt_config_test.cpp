// GptConfig: sizes of published models, its text, what it refuses.
#include "nn/nn_test.hpp"
#include "nn/small_gpt.hpp"

namespace ferrite::nn {
namespace {

using testing::expect_error;

TEST(GptConfig, HasTheParametersOfThePublishedModels) {
  EXPECT_EQ(GptConfig::gpt2().parameter_count(), 124'439'808);
  EXPECT_EQ(GptConfig::gpt2_medium().parameter_count(), 354'823'168);
  EXPECT_EQ(GptConfig::gpt2_large().parameter_count(), 774'030'080);
  EXPECT_EQ(GptConfig::gpt2_xl().parameter_count(), 1'557'611'200);
  EXPECT_EQ(GptConfig::gpt2().padded_vocab(), 50304);
  Cpu backend;
  Rng rng(1);
  Gpt<Cpu> model(backend, small(), rng);
  const std::int64_t padding = (128 - 50) * 8;
  EXPECT_EQ(model.parameter_count(), small().parameter_count() + padding);
  EXPECT_EQ(GptConfig::llama3_1b().parameter_count(), 1'235'814'400);
  for (const GptConfig& config :
       {small_llama(), small_llama().with_tied(true).with_qkv_bias(true).with_head_width(6)}) {
    Gpt<Cpu> llama(backend, config, rng);
    const std::int64_t unused = (128 - 50) * 16 * (config.tied ? 1 : 2);
    EXPECT_EQ(llama.parameter_count(), config.parameter_count() + unused);
  }
}

TEST(GptConfig, GoesThroughItsText) {
  const auto config = small().with_dropout(0.25).with_dtype(DType::bf16);
  EXPECT_EQ(GptConfig::from_json(config.to_json(), "it"), config);
  const auto refuses = [](const char* text, const char* part) {
    expect_error<ParseError>([&] { GptConfig::from_json(text, "m.safetensors"); }, {"m.safetensors", part});
  };
  refuses("{", "is not the config of a Gpt");
  refuses("{\"vocab\": 3}", "context");
  std::string text = small().to_json();
  refuses(text.replace(text.find("\"heads\":2"), 9, "\"heads\":3").c_str(), "heads must divide dim");
}

TEST(GptConfig, OldTextsStayAsTheyAreAndNewOnesSayWhatDiffers) {
  EXPECT_EQ(small().to_json(),
            R"({"vocab":50,"context":16,"layers":2,"heads":2,"dim":8,"dropout":0.0,"dtype":"f32"})");
  const RopeScaling scaling{RopeScaling::Kind::llama3, 8, 1.5, 4, 64};
  const GptConfig configs[] = {
      small_llama(),
      small_llama().with_rope(RopeConfig{5e5}.with_scaling(scaling).with_pairs(RopePairs::neighbours)),
      small_llama().with_rope(RopeConfig{}.with_scaling(RopeScaling::linear(2))),
      small().with_window(3).with_qkv_bias(false).with_eps(1e-6).with_head_width(6).with_activation(
          Activation::relu)};
  for (const GptConfig& config : configs)
    EXPECT_EQ(GptConfig::from_json(config.to_json(), "it"), config) << config.to_json();
}

TEST(GptConfig, TextsMustBeExact) {
  const auto refuses = [](const char* key, const char* value, const char* part) {
    std::string text = small_llama().to_json();
    text.insert(1, std::string("\"") + key + "\":" + value + ",");  // the last of two equal keys counts
    if (const auto old = text.rfind(std::string("\"") + key + "\":"); old > 1)
      text.erase(old, text.find(',', old) + 1 - old);
    expect_error<ParseError>([&] { GptConfig::from_json(text, "m.safetensors"); }, {"m.safetensors", part});
  };
  refuses("dim", "8.5", "dim 8.5: must be an integer");
  refuses("layers", "2.0", "layers 2.0: must be an integer");
  refuses("hidden", "1e3", "hidden 1000.0: must be an integer");
  refuses("kv_heads", "3", "kv_heads must divide heads");
  refuses("experts", "8", "\"experts\" is not known");
  refuses("norm", "\"batch\"", "norm \"batch\": must be one of layer, rms");
  refuses("activation", "\"swish\"", "activation \"swish\": must be one of none, relu");
  refuses("window", "-1", "window -1: must not be negative");
}

TEST(GptConfig, RefusesSizesThatMakeNoModel) {
  Cpu backend;
  Rng rng(1);
  const auto refuses = [&](const GptConfig& config, const char* part) {
    expect_error<ValueError>([&] { Gpt<Cpu>(backend, config, rng); }, {"[GptConfig]", part});
  };
  refuses(small().with_layers(0), "layers 0: must be at least 1");
  refuses(small().with_heads(3), "dim 8 and 3 heads");
  refuses(small().with_dropout(2), "dropout 2");
  refuses(small().with_dtype(DType::i32), "dtype i32");
}

}  // namespace
}  // namespace ferrite::nn
