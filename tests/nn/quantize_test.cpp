// Layers and models with weights of 8 bits.
#include "ferrite/nn/quantize.hpp"

#include "ferrite/nn/generate.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "nn/nn_test.hpp"
#include "scratch_folder.hpp"

namespace ferrite::nn {
namespace {

using Ids = std::vector<std::int32_t>;

GptConfig small() {
  return GptConfig{}.with_vocab(50).with_context(16).with_layers(2).with_heads(2).with_dim(32);
}
template <class B>
Tensor<B> some_text(B& backend) {
  return from_vector(backend, Ids{1, 49, 7, 3, 3, 20, 0, 31, 5, 6, 7, 8}, {2, 6});
}
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(a[i] - b[i], 2);
    size += std::pow(a[i], 2);
  }
  return std::sqrt(error / size);
}

TEST(Quantize, ALinearLayerIsNearlyTheSame) {
  Autodiff<Cpu> b;
  Rng rng(1);
  Linear<Autodiff<Cpu>> layer(b, LinearConfig{40, 30}.with_activation(Activation::gelu), rng);
  const auto x = randn(b, {3, 5, 40}, rng);
  const auto before = layer.forward(x).to_vector<float>();
  quantize(layer);
  EXPECT_LT(distance(before, layer.forward(x).to_vector<float>()), 0.01);
  EXPECT_EQ(layer.weight.dtype(), DType::i8);
  ASSERT_EQ(layer.parameters().size(), 1u);  // no optimiser may have the weight
  EXPECT_EQ(layer.parameters()[0].name, "bias");
  const auto state = layer.state();
  EXPECT_EQ(state.at("weight").dtype(), DType::i8);
  EXPECT_EQ(state.at("scale").shape(), (Shape{30}));
  const auto weight = layer.weight.to_vector<int>();
  quantize(layer);  // once is enough
  EXPECT_EQ(layer.weight.to_vector<int>(), weight);
  EXPECT_GT(sum(layer.forward(x)).backward().of(layer.bias).to_vector<float>().size(), 0u);
}

template <class B>
void expect_quantized_gpt(B backend, DType dtype, double most) {
  Rng rng(3);
  Gpt<B> model(backend, small().with_dtype(dtype), rng);
  model.set_mode(Mode::inference);
  const auto ids = some_text(backend), targets = flip(ids, {1});
  const auto logits = model.logits(ids).template to_vector<float>();
  const double loss = model.loss(ids, targets).item();
  model.quantize();
  EXPECT_TRUE(model.config().quantized);
  EXPECT_EQ(model.tokens.weight.dtype(), DType::i8);
  EXPECT_EQ(model.blocks[1].ff.down.weight.dtype(), DType::i8);
  EXPECT_EQ(model.positions->weight.dtype(), dtype);
  const auto scores = model.logits(ids);
  EXPECT_EQ(scores.dtype(), dtype);
  EXPECT_LT(distance(logits, scores.template to_vector<float>()), most);
  EXPECT_NEAR(model.loss(ids, targets).item(), loss, 0.01);
  EXPECT_NEAR(model.loss(ids, targets).item(), softmax_cross_entropy(scores, targets).item(), most);
}
TEST(Quantize, AGptIsNearlyTheSame) {
  expect_quantized_gpt(Cpu(), DType::f32, 0.01);
  expect_quantized_gpt(Cpu(), DType::bf16, 0.03);
  expect_quantized_gpt(Reference(), DType::f32, 0.01);
}

TEST(Quantize, AFileSaysSoAndLoadsAsAnyOther) {
  const testing::ScratchFolder folder;
  Cpu b;
  Rng rng(3);
  Gpt<Cpu> model(b, small(), rng);
  train::save_gpt(folder / "float.safetensors", model);
  model.quantize();
  train::save_gpt(folder / "int8.safetensors", model);
  EXPECT_LT(static_cast<double>(std::filesystem::file_size(folder / "int8.safetensors")),
            0.5 * static_cast<double>(std::filesystem::file_size(folder / "float.safetensors")));
  Gpt<Cpu> loaded = train::load_gpt(b, folder / "int8.safetensors");
  EXPECT_EQ(loaded.config(), model.config());
  EXPECT_TRUE(loaded.config().quantized);
  EXPECT_EQ(loaded.logits(some_text(b)).to_vector<float>(), model.logits(some_text(b)).to_vector<float>());
  EXPECT_FALSE(train::read_gpt_config(folder / "float.safetensors").quantized);
  Gpt<Cpu> other = Gpt<Cpu>::blank(b, small());
  EXPECT_THROW(other.load_state(model.state()), ValueError);  // it has no scales
}

TEST(Quantize, TextsGrowTokenByTokenAsInOnePass) {
  Cpu b;
  Rng rng(3);
  Gpt<Cpu> model(b, small().with_quantized(true), rng);
  model.set_mode(Mode::inference);
  const auto ids = some_text(b);
  const auto whole = select(model.logits(ids), 1, 5).to_vector<float>();
  KvCache<Cpu> cache = model.make_cache(2, 6);
  Tensor<Cpu> last;
  for (std::int64_t t = 0; t < 6; ++t) last = model.logits(slice(ids, 1, t, t + 1), cache);
  EXPECT_LT(distance(whole, last.to_vector<float>()), 1e-5);
  const auto texts = generate(model, {{1, 2, 3}}, GenerateConfig{}.with_tokens(5).with_temperature(0));
  EXPECT_EQ(texts[0].tokens.size(), 5u);
}

}  // namespace
}  // namespace ferrite::nn
