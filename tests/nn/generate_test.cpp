// Which token comes next: limits, penalties, seeds, and where texts end.
#include "ferrite/nn/generate.hpp"

#include <map>

#include "nn/nn_test.hpp"
#include "nn/small_gpt.hpp"

namespace ferrite::nn {
namespace {

using testing::expect_error;
using Ids = std::vector<std::int32_t>;
using Scores = std::vector<float>;

/// How often each token is drawn.
std::map<std::int32_t, int> draws(const GenerateConfig& config, const Scores& scores, int count = 2000) {
  Sampler sampler(config);
  std::map<std::int32_t, int> drawn;
  for (int i = 0; i < count; ++i) ++drawn[sampler.pick(scores, Ids{}, 0, static_cast<std::uint64_t>(i))];
  return drawn;
}

const Scores four_scores = {0, std::log(2.0f), std::log(5.0f), std::log(2.0f)};  // probabilities .1 .2 .5 .2

TEST(Sampler, DrawsByProbability) {
  const auto drawn = draws({}, four_scores);
  EXPECT_NEAR(drawn.at(0), 200, 50);
  EXPECT_NEAR(drawn.at(1), 400, 70);
  EXPECT_NEAR(drawn.at(2), 1000, 90);
  EXPECT_NEAR(drawn.at(3), 400, 70);
  // Squared: 1 : 4 : 25 : 4.
  EXPECT_NEAR(draws(GenerateConfig{}.with_temperature(0.5), four_scores).at(2), 2000 * 25 / 34, 90);
}

TEST(Sampler, TemperatureZeroTakesTheLikeliest) {
  EXPECT_EQ(draws(GenerateConfig{}.with_temperature(0), four_scores).size(), 1u);
  Sampler greedy(GenerateConfig{}.with_temperature(0));
  EXPECT_EQ(greedy.pick(four_scores, Ids{}, 0, 0), 2);
  EXPECT_EQ(greedy.pick(Scores{1, 3, 3}, Ids{}, 0, 0), 1);  // of equal ones the first
  EXPECT_EQ(draws(GenerateConfig{}.with_temperature(1e-9), four_scores).size(), 1u);  // nothing overflows
}

TEST(Sampler, TopKAndTopPLimitTheChoice) {
  const auto keys = [&](const GenerateConfig& config) {
    Ids ids;
    for (const auto& item : draws(config, four_scores)) ids.push_back(item.first);
    return ids;
  };
  EXPECT_EQ(keys(GenerateConfig{}.with_top_k(1)), (Ids{2}));
  EXPECT_EQ(keys(GenerateConfig{}.with_top_k(2)), (Ids{1, 2}));  // of 1 and 3 the lower id
  EXPECT_EQ(keys(GenerateConfig{}.with_top_k(9)), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(keys(GenerateConfig{}.with_top_p(0.4)), (Ids{2}));
  EXPECT_EQ(keys(GenerateConfig{}.with_top_p(0.65)), (Ids{1, 2}));
  EXPECT_EQ(keys(GenerateConfig{}.with_top_p(0.85)), (Ids{1, 2, 3}));
  EXPECT_EQ(keys(GenerateConfig{}.with_top_k(2).with_top_p(0.7)), (Ids{2}));  // 5 of 7 of the two
  EXPECT_EQ(keys(GenerateConfig{}.with_vocabulary(2)), (Ids{0, 1}));
}

TEST(Sampler, APenaltyKeepsTextsFromRepeating) {
  Sampler sampler(GenerateConfig{}.with_temperature(0).with_repetition_penalty(2));
  EXPECT_EQ(sampler.pick(Scores{1, 1.5, -1}, Ids{}, 0, 0), 1);
  EXPECT_EQ(sampler.pick(Scores{1, 1.5, -1}, Ids{1, 1}, 0, 0), 0);        // 0.75, once however often
  EXPECT_EQ(sampler.pick(Scores{-3, -1.5, -2}, Ids{1, 2}, 0, 0), 0 + 0);  // -3, -3, -4: the first
  EXPECT_EQ(sampler.pick(Scores{-4, -1.5, -2.5}, Ids{1}, 0, 0), 2);
}

TEST(Sampler, DependsOnlyOnSeedStreamAndIndex) {
  const auto sequence = [](std::uint64_t seed, std::uint64_t stream) {
    Sampler sampler(GenerateConfig{}.with_seed(seed));
    Ids ids;
    for (std::uint64_t i = 0; i < 50; ++i) ids.push_back(sampler.pick(four_scores, Ids{}, stream, i));
    return ids;
  };
  EXPECT_EQ(sequence(1, 0), sequence(1, 0));
  EXPECT_NE(sequence(1, 0), sequence(2, 0));
  EXPECT_NE(sequence(1, 0), sequence(1, 1));
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  const auto refuses = [](const GenerateConfig& config, const char* part) {
    expect_error<ValueError>([&] { Sampler sampler(config); }, {"[generate]", part});
  };
  refuses(GenerateConfig{}.with_tokens(-1), "tokens -1");
  refuses(GenerateConfig{}.with_temperature(-1), "temperature -1");
  refuses(GenerateConfig{}.with_top_k(-2), "top_k -2");
  refuses(GenerateConfig{}.with_top_p(0), "top_p 0");
  refuses(GenerateConfig{}.with_top_p(1.5), "top_p 1.5");
  refuses(GenerateConfig{}.with_repetition_penalty(0), "repetition_penalty 0");
  Sampler sampler({});
  expect_error<ValueError>(
      [&] {
        sampler.pick(Scores{1, NAN, 2}, Ids{}, 3, 7);
      },
      {"token 7 of text 3, hold NaN"});
  expect_error<ValueError>([&] { sampler.pick(Scores{-INFINITY}, Ids{}, 0, 0); }, {"no finite maximum"});
}

TEST(Sampler, PicksWhatTheOpPicks) {
  Cpu b;
  using T = Tensor<Cpu>;
  constexpr std::int64_t rows = 64, vocab = 50;
  Rng rng(4);
  // Few values, so that some are equal.
  const T rounded = round(randn(b, {rows, vocab}, rng) * 4) / 2.0f;
  const T seen = rand(b, {rows, vocab}, rng) < 0.3;
  const std::vector<bool> flags = seen.to_vector<bool>();
  const std::vector<float> values = rounded.to_vector();
  for (const op::NextToken& op :
       {op::NextToken{}, op::NextToken{0}, op::NextToken{0, 0, 1, 1.4}, op::NextToken{0.7, 6},
        op::NextToken{1.3, 0, 0.55}, op::NextToken{0.9, 12, 0.8, 1.3, 40}}) {
    const auto config = GenerateConfig{}
                            .with_temperature(op.temperature)
                            .with_top_k(op.top_k)
                            .with_top_p(op.top_p)
                            .with_repetition_penalty(op.repetition_penalty)
                            .with_vocabulary(op.vocabulary)
                            .with_seed(7);
    Sampler sampler(config);
    Ids expected;
    std::vector<double> uniforms;
    for (std::size_t n = 0; n < rows; ++n) {
      Ids text;
      for (std::int32_t id = 0; id < vocab; ++id)
        if (flags[n * vocab + static_cast<std::size_t>(id)]) text.push_back(id);
      expected.push_back(sampler.pick(std::span(values).subspan(n * vocab, vocab), text, n, 0));
      uniforms.push_back(uniform_at<double>({7, n}, 0));
    }
    const T text = full(b, {rows, 2}, -1, DType::i32), read = zeros(b, {rows}, DType::i32);
    const T numbers = expand(reshape(from_vector(b, uniforms), {rows, 1}), {rows, 2});
    EXPECT_EQ(eval_all(op, rounded, text, read, numbers, seen)[3].to_vector<std::int32_t>(), expected)
        << format_attributes(op);
  }
}

struct Generate : ::testing::Test {
  Cpu backend;
  Rng rng{3};
  Gpt<Cpu> model{backend, GptConfig{}.with_vocab(20).with_context(8).with_layers(1).with_heads(2).with_dim(8),
                 rng};
};

TEST_F(Generate, IsTheSameForASeedAloneAndInABatch) {
  const auto config = GenerateConfig{}.with_tokens(12).with_seed(4);
  const auto one = generate(model, {{1, 2}}, config), again = generate(model, {{1, 2}}, config);
  EXPECT_EQ(one[0].tokens.size(), 12u);
  EXPECT_EQ(one[0].tokens, again[0].tokens);
  EXPECT_NE(generate(model, {{1, 2}}, config.with_seed(5))[0].tokens, one[0].tokens);
  const auto batch = generate(model, {{1, 2}, {3}}, GenerateConfig{}.with_tokens(6).with_seed(4));
  EXPECT_EQ(batch[0].tokens, Ids(one[0].tokens.begin(), one[0].tokens.begin() + 6));
}

TEST_F(Generate, ShowsTokensAsTheyComeAndStops) {
  const auto config = GenerateConfig{}.with_tokens(7);
  std::map<std::size_t, Ids> seen;
  const auto all = generate(model, {{1}, {2, 3}}, config, [&](std::size_t text, std::int32_t token) {
    seen[text].push_back(token);
    return Next::more;
  });
  EXPECT_EQ(seen[0], all[0].tokens);
  EXPECT_EQ(seen[1], all[1].tokens);
  const auto some = generate(model, {{1}, {2, 3}}, config, [&](std::size_t text, std::int32_t) {
    return text == 0 ? Next::stop : Next::more;
  });
  EXPECT_EQ(some[0].tokens, (Ids{all[0].tokens[0]}));
  EXPECT_TRUE(some[0].stopped);
  EXPECT_EQ(some[1].tokens, all[1].tokens);
  EXPECT_FALSE(some[1].stopped);
  const auto cut = generate(model, {{1}}, config.with_stop_tokens({all[0].tokens[2], 99}));
  EXPECT_LT(cut[0].tokens.size(), 3u);
  EXPECT_TRUE(cut[0].stopped);
  EXPECT_TRUE(generate(model, {{1}}, config.with_tokens(0))[0].tokens.empty());
}

/// The steps that run on a device by themselves, here one by one on the CPU.
TEST_F(Generate, StepsOnADeviceGiveTheSameTexts) {
  const std::vector<Ids> prompts = {{1, 2}, {3}, {4, 5, 6, 7, 8}};
  for (const auto& config :
       {GenerateConfig{}.with_tokens(3), GenerateConfig{}.with_tokens(30).with_seed(2),  // restarts
        GenerateConfig{}.with_tokens(20).with_temperature(0),
        GenerateConfig{}.with_tokens(20).with_top_k(5).with_top_p(0.8).with_repetition_penalty(1.3),
        GenerateConfig{}.with_tokens(20).with_vocabulary(9).with_stop_tokens({3, 4})}) {
    std::map<std::size_t, Ids> seen;
    const auto expected = generate(model, prompts, config);
    const auto texts = generate_on_device(
        model, prompts, config,
        [&](std::size_t text, std::int32_t token) {
          seen[text].push_back(token);
          return Next::more;
        },
        false);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(texts[i].tokens, expected[i].tokens) << i;
      EXPECT_EQ(texts[i].stopped, expected[i].stopped) << i;
      EXPECT_EQ(seen[i], expected[i].tokens) << i;
    }
  }
}

TEST_F(Generate, StepsOfALlamaGiveTheSameTexts) {
  const std::vector<Ids> prompts = {{1, 2}, {3}, {4, 5, 6, 7, 8}};
  for (const std::int64_t window : {0, 3}) {
    Gpt<Cpu> llama(backend, small_llama().with_window(window), rng);
    for (const bool quantized : {false, true}) {
      if (quantized) llama.quantize();
      for (const auto& config : {GenerateConfig{}.with_tokens(8).with_temperature(0),
                                 GenerateConfig{}.with_tokens(30).with_seed(2)}) {  // restarts
        const auto expected = generate(llama, prompts, config);
        const auto texts = generate_on_device(llama, prompts, config, {}, false);
        for (std::size_t i = 0; i < prompts.size(); ++i)
          EXPECT_EQ(texts[i].tokens, expected[i].tokens) << i << ", window " << window;
      }
    }
  }
}

TEST_F(Generate, StepsOnADeviceStopWhereTheCallbackSays) {
  const auto stop_at = [](std::size_t count) {
    return [count, n = std::size_t{0}](std::size_t, std::int32_t) mutable {
      return ++n == count ? Next::stop : Next::more;
    };
  };
  const auto config = GenerateConfig{}.with_tokens(15);
  const auto expected = generate(model, {{1}}, config, stop_at(9));
  const auto texts = generate_on_device(model, {{1}}, config, stop_at(9), false);
  EXPECT_EQ(texts[0].tokens.size(), 9u);
  EXPECT_EQ(texts[0].tokens, expected[0].tokens);
  EXPECT_TRUE(texts[0].stopped);
}

TEST_F(Generate, StepsOnADeviceRefuseDamagedWeights) {
  assign(model.norm.weight, to_host(full(backend, {8}, NAN)));
  expect_error<ValueError>([&] { generate_on_device(model, {{1}}, {}, {}, false); },
                           {"[generate]", "token 0 of text 0", "NaN"});
}

TEST(GenerateInMixedPrecision, TheCacheHas16Bits) {
  using B = Autocast<Cpu>;
  B backend;
  Rng rng(3);
  Gpt<B> model(backend, GptConfig{}.with_vocab(20).with_context(8).with_layers(1).with_heads(2).with_dim(16),
               rng);
  EXPECT_EQ(model.make_cache(1, 4).config().dtype, DType::bf16);
  const auto config = GenerateConfig{}.with_tokens(12);
  EXPECT_EQ(generate(model, {{1, 2}}, config)[0].tokens.size(), 12u);
  EXPECT_EQ(generate_on_device(model, {{1, 2}}, config, {}, false)[0].tokens.size(), 12u);
}

TEST_F(Generate, RefusesPromptsThatItCannotRead) {
  const auto refuses = [&](const std::vector<Ids>& prompts, const char* part) {
    expect_error<ValueError>([&] { generate(model, prompts); }, {"[generate]", part});
  };
  refuses({}, "no prompts");
  refuses({{1}, {}}, "prompt 1 is empty");
  refuses({{1, 20}}, "prompt 0 has the id 20: the model's vocabulary has 0 to 19");
  refuses({{-1}}, "id -1");
  refuses({Ids(9, 1)}, "prompt 0 has 9 tokens: the model's context has 8");
  EXPECT_EQ(generate(model, {Ids(8, 1)}, GenerateConfig{}.with_tokens(3))[0].tokens.size(), 3u);
}

}  // namespace
}  // namespace ferrite::nn
