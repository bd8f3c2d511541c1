// Gpt: its loss and gradients, the cache against the whole pass, and texts.
#include "ferrite/nn/gpt.hpp"

#include "ferrite/nn/generate.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "nn/nn_test.hpp"
#include "nn/small_gpt.hpp"
#include "scratch_folder.hpp"

namespace ferrite::nn {
namespace {

using testing::expect_error;
using testing::expect_gradients;
using testing::expect_values;
using Ids = std::vector<std::int32_t>;

/// Weights large enough for scores that differ: those of the initialisation give nearly equal ones.
template <class B>
Gpt<B> lively(B& backend, const GptConfig& config = small()) {
  Rng rng(5);
  Gpt<B> model(backend, config, rng);
  for (const auto& p : model.parameters())
    assign(p.tensor, to_host(randn(backend, p.tensor.shape(), rng, 0, 0.5, config.dtype)));
  return model;
}

Ids some_ids(std::int64_t count, std::int64_t vocab) {
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<std::int32_t>(integer_at({7, 0}, static_cast<std::uint64_t>(i), 0, vocab)));
  return ids;
}

template <class B>
Tensor<B> some_text(B& backend, const Shape& shape, std::int64_t vocab) {
  return from_vector(backend, some_ids(shape.numel(), vocab), shape);
}

class GptOn : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, GptOn, ::testing::Values("reference", "cpu", "lazy-cpu", "parity"),
                         testing::name_of);

TEST_P(GptOn, IsInitialisedAsGpt2) {
  Rng rng(1);
  Gpt<B> model(backend, small().with_dim(64).with_layers(8), rng);
  const auto deviation = [](const Tensor<B>& x) { return std::sqrt(mean(square(x)).item()); };
  EXPECT_NEAR(deviation(model.tokens.weight), 0.02, 0.002);
  EXPECT_NEAR(deviation(model.positions->weight), 0.02, 0.002);
  EXPECT_NEAR(deviation(model.blocks[7].attn.qkv.weight), 0.02, 0.002);
  EXPECT_NEAR(deviation(model.blocks[7].ff.up.weight), 0.02, 0.002);
  EXPECT_NEAR(deviation(model.blocks[7].attn.proj.weight), 0.005, 0.0005);
  EXPECT_NEAR(deviation(model.blocks[7].ff.down.weight), 0.005, 0.0005);
  for (const Tensor<B>* bias : {&model.blocks[0].ff.up.bias, &model.blocks[0].ff.down.bias})
    EXPECT_EQ(deviation(*bias), 0);
  // Nearly all scores are equal, so the loss is that of guessing. (A token's own score is higher, as the
  // tables are one: it must not be the target.)
  const auto ids = some_text(backend, {2, 5}, 49);
  EXPECT_NEAR(model.loss(ids, ids + 1).item(), std::log(50.0), 0.1);
}

TEST_P(GptOn, GradientsAgreeWithCentralDifferencesAlsoOfTheTiedWeight) {
  Gpt<B> model = lively(backend, small().with_layers(1).with_vocab(6).with_dtype(DType::f64));
  const auto ids = some_text(backend, {2, 4}, 6),
             targets = from_vector(backend, Ids{1, 2, 3, 4, 5, 0, 1, 2}, {2, 4});
  expect_gradients<B>(
      model, [&] { return model.loss(ids, targets); }, 1e-5);
  // The differences above are those of both uses of the table. Neither is nothing: with the other one cut
  // off, a gradient is left.
  const auto fixed = model.features(ids).detach();
  const auto projected =
      softmax_cross_entropy(model.project(fixed), targets).backward().of(model.tokens.weight);
  const auto grad = model.loss(ids, targets).backward().of(model.tokens.weight);
  EXPECT_GT(max(abs(projected)).item(), 1e-3);
  EXPECT_GT(max(abs(grad - projected)).item(), 1e-3);
  EXPECT_EQ(max(abs(slice(grad, 0, 6, 128))).item(), 0);  // the padding
}

TEST_P(GptOn, ACachedPassEqualsTheWholePass) {
  Gpt<B> model = lively(backend);
  const auto ids = some_text(backend, {3, 11}, 50);
  const auto whole = model.logits(ids).detach();
  EXPECT_EQ(whole.shape(), (Shape{3, 11, 50}));
  KvCache<B> cache = model.make_cache(3, 11);
  for (int again = 0; again < 2; ++again, cache.clear()) {
    std::int64_t start = 0;
    for (const std::int64_t end : {4, 5, 6, 9, 11}) {
      const auto part = model.logits(slice(ids, 1, start, end), cache);
      EXPECT_EQ(cache.length(), end);
      expect_values(part, slice(whole, 1, start, end).to_vector<double>(), 1e-5);
      start = end;
    }
  }
}

TEST_P(GptOn, TextsWithTheCacheAreThoseWithout) {
  Gpt<B> model = lively(backend);
  const std::vector<Ids> prompts = {{3}, {1, 2, 3, 4}, {9, 8}};
  const auto texts = generate(model, prompts, GenerateConfig{}.with_tokens(9).with_temperature(0));
  ASSERT_EQ(texts.size(), 3u);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Ids text = prompts[i];
    for (int step = 0; step < 9; ++step) {
      const auto length = static_cast<std::int64_t>(text.size());
      const auto scores = model.logits(from_vector(backend, text, {1, length}));
      text.push_back(argmax(select(scores, 1, length - 1), -1).template item<std::int32_t>());
    }
    Ids expected(text.begin() + static_cast<std::ptrdiff_t>(prompts[i].size()), text.end());
    EXPECT_EQ(texts[i].tokens, expected) << "prompt " << i;
    EXPECT_FALSE(texts[i].stopped);
  }
  EXPECT_EQ(model.mode(), Mode::training);
}

TEST_P(GptOn, AFullContextGoesOnWithItsLaterHalf) {
  Gpt<B> model = lively(backend, small().with_context(6));
  const Ids prompt = {4, 7, 1};
  Ids text = prompt, window = prompt;
  for (int step = 0; step < 20; ++step) {
    if (window.size() == 7) window.erase(window.begin(), window.begin() + 3);  // 3 that were read, 1 new
    const auto length = static_cast<std::int64_t>(window.size());
    const auto scores = model.logits(from_vector(backend, window, {1, length}));
    window.push_back(argmax(select(scores, 1, length - 1), -1).template item<std::int32_t>());
    text.push_back(window.back());
  }
  const auto config = GenerateConfig{}.with_tokens(20).with_temperature(0);
  EXPECT_EQ(generate(model, {prompt}, config)[0].tokens, Ids(text.begin() + 3, text.end()));
}

TEST_P(GptOn, OverfitsAShortText) {
  Rng rng(1);
  Gpt<B> model(backend, small().with_dim(32).with_context(64), rng);
  const Ids text = some_ids(65, 50);
  const auto ids = from_vector(backend, Ids(text.begin(), text.end() - 1), {1, 64});
  const auto targets = from_vector(backend, Ids(text.begin() + 1, text.end()), {1, 64});
  optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(1e-2).with_weight_decay(0));
  double loss = 0;
  for (int step = 0; step < 150; ++step) {
    const auto value = model.loss(ids, targets);
    optimizer.step(value.backward());
    loss = value.item();
  }
  EXPECT_LT(loss, 0.01);
  const auto config = GenerateConfig{}.with_tokens(60).with_temperature(0);
  EXPECT_EQ(generate(model, {Ids(text.begin(), text.begin() + 4)}, config)[0].tokens,
            Ids(text.begin() + 4, text.begin() + 64));
}

TEST_P(GptOn, LlamasReadTokenByTokenAsAtOnceAndLearn) {
  for (const GptConfig& config : {small_llama(), small_llama().with_window(3).with_tied(true),
                                  small().with_window(2).with_kv_heads(1)}) {
    Gpt<B> model = lively(backend, config);
    const auto ids = some_text(backend, {2, 9}, 50), targets = some_text(backend, {2, 9}, 50);
    const auto whole = model.logits(ids);
    KvCache<B> cache = model.make_cache(2, 9);
    std::vector<Tensor<B>> steps{model.logits(slice(ids, 1, 0, 4), cache)};
    for (std::int64_t t = 4; t < 9; ++t) steps.push_back(model.logits(slice(ids, 1, t, t + 1), cache));
    EXPECT_LT(max(abs(cat(steps, 1) - whole)).item(), 1e-3);
    // Every parameter gets a gradient, and the first step along it lowers the loss.
    const auto before = model.loss(ids, targets);
    const auto gradients = before.backward();
    double change = 0;
    for (const auto& p : model.parameters()) {
      const auto gradient = gradients.of(p.tensor).template to_vector<float>();
      auto values = p.tensor.template to_vector<float>();
      double square_sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        square_sum += static_cast<double>(gradient[i]) * gradient[i];
        values[i] -= 1e-4f * gradient[i];
      }
      EXPECT_GT(square_sum, 0) << p.name;
      change += 1e-4 * square_sum;
      assign(p.tensor, HostTensor::from(std::span<const float>(values), p.tensor.shape()));
    }
    EXPECT_NEAR(before.item() - model.loss(ids, targets).item(), change, 0.2 * change);
  }
}

TEST_P(GptOn, AFileHoldsWeightsAndConfig) {
  const testing::ScratchFolder folder;
  Gpt<B> model = lively(backend, small_llama().with_dropout(0.5));
  train::save_gpt(folder / "m.safetensors", model);
  Gpt<B> loaded = train::load_gpt(backend, folder / "m.safetensors");
  EXPECT_EQ(loaded.config(), model.config());
  model.set_mode(Mode::inference), loaded.set_mode(Mode::inference);
  const auto ids = some_text(backend, {2, 3}, 50);
  EXPECT_EQ(loaded.logits(ids).to_vector(), model.logits(ids).to_vector());
  train::write_weights(folder / "bare.safetensors", model.state());
  expect_error<ParseError>([&] { train::load_gpt(backend, folder / "bare.safetensors"); },
                           {"bare.safetensors: has no config", "save_gpt"});
  // Refused before the model is built: no memory holds it.
  const auto damaged = [&](const GptConfig& config) {
    train::write_weights(folder / "damaged.safetensors", model.state(),
                         {{train::gpt_setting, config.to_json()}});
    train::load_gpt(backend, folder / "damaged.safetensors");
  };
  expect_error<ParseError>([&] { damaged(model.config().with_layers(1'000'000'000)); },
                           {"damaged.safetensors: its config says 1000000000 layers, and the file has "});
  expect_error<ParseError>([&] { damaged(model.config().with_vocab(1'000'000'000)); },
                           {"1000000000 tokens of"});
}

TEST_P(GptOn, ErrorsSayWhatIsWrong) {
  Gpt<B> model = lively(backend);
  expect_error<ValueError>(
      [&] {
        model.logits(some_text(backend, {1, 17}, 50));
      },
      {"[Gpt] 17 positions: the model's context has 16"});
  expect_error<ShapeError>([&] { model.logits(some_text(backend, {3}, 50)); }, {"[Gpt] ids"});
  expect_error<ValueError>([&] { model.make_cache(1, 17); }, {"17 positions"});
  KvCache<B> cache = model.make_cache(1, 4);
  model.logits(some_text(backend, {1, 3}, 50), cache);
  expect_error<ValueError>(
      [&] {
        model.logits(some_text(backend, {1, 2}, 50), cache);
      },
      {"[KvCache] 3 positions and 2 more: there is room for 4"});
  expect_error<ShapeError>([&] { model.logits(some_text(backend, {2, 1}, 50), cache); }, {"[KvCache] q"});
  Rng rng(1);
  const auto x = randn(backend, {1, 1, 8}, rng);
  expect_error<GradientError>([&] { model.blocks[0].forward(x, cache, 0); }, {"NoGrad"});
  MultiHeadAttention<B> open(backend, {8, 2}, rng);
  expect_error<ValueError>([&] { open.forward(x, cache, 0); }, {"causal"});
}

}  // namespace
}  // namespace ferrite::nn
