// Attention and transformer blocks against their definitions.
#include "ferrite/nn/transformer.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/triangle.hpp"

#include "nn/nn_test.hpp"

namespace ferrite::nn {
namespace {

using testing::expect_error;
using testing::expect_gradients;
using testing::expect_values;

class Transformer : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, Transformer, ::testing::Values("reference", "cpu"), testing::name_of);

TEST_P(Transformer, AttentionIsWhatItsDefinitionSaysHeadByHead) {
  Rng rng(3);
  const std::int64_t n = 2, t = 3, dim = 4, heads = 2, width = dim / heads;
  MultiHeadAttention<B> attn(backend, MultiHeadAttentionConfig{dim, heads}.with_dtype(DType::f64), rng);
  const auto x = randn(backend, {n, t, dim}, rng, 0, 1, DType::f64);
  const auto packed = attn.qkv.forward(x);
  std::vector<Tensor<B>> outputs;
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto part = [&](std::int64_t which) {
      const std::int64_t start = which * dim + h * width;
      return slice(packed, 2, start, start + width);
    };
    const auto scores =
        matmul(part(0), transpose(part(1), 1, 2)) * (1 / std::sqrt(static_cast<double>(width)));
    outputs.push_back(matmul(softmax(scores, -1), part(2)));
  }
  const auto expected = attn.proj.forward(cat(outputs, 2));
  expect_values(attn.forward(x), expected.to_vector<double>(), 1e-12);
}

TEST_P(Transformer, CausalHidesTheFuture) {
  Rng rng(3);
  TransformerBlock<B> block(backend, TransformerBlockConfig{8, 2}.with_causal(true), rng);
  const auto x = randn(backend, {1, 5, 8}, rng);
  const auto changed = cat<B>({slice(x, 1, 0, 3), randn(backend, {1, 2, 8}, rng)}, 1);
  const auto before = slice(block.forward(x), 1, 0, 3), after = slice(block.forward(changed), 1, 0, 3);
  expect_values(after, before.to_vector<double>(), 1e-6);
  TransformerBlock<B> open(backend, {8, 2}, rng);
  const auto difference = max(abs(slice(open.forward(x), 1, 0, 3) - slice(open.forward(changed), 1, 0, 3)));
  EXPECT_GT(difference.item(), 1e-3f);
}

TEST_P(Transformer, AMaskHidesKeys) {
  Rng rng(3);
  MultiHeadAttention<B> causal(backend, MultiHeadAttentionConfig{4, 2}.with_causal(true), rng);
  MultiHeadAttention<B> open(backend, {4, 2}, rng);
  open.load_state(causal.state());
  const auto x = randn(backend, {2, 4, 4}, rng);
  const auto mask = tril(ones(backend, {4, 4})) != 0;
  expect_values(open.forward(x, mask), causal.forward(x).to_vector<double>(), 1e-6);
}

TEST_P(Transformer, AResidualIsAddedToTheResult) {
  Rng rng(3);
  MultiHeadAttention<B> attn(backend, MultiHeadAttentionConfig{4, 2}.with_dtype(DType::f64), rng);
  FeedForward<B> ff(backend, FeedForwardConfig{4, 8}.with_dtype(DType::f64), rng);
  const auto x = randn(backend, {2, 3, 4}, rng, 0, 1, DType::f64), r = x * 3 + 1;
  const auto mask = tril(ones(backend, {3, 3})) != 0;
  expect_values(attn.forward(x, {}, r), (r + attn.forward(x)).to_vector<double>(), 1e-14);
  expect_values(attn.forward(x, mask, r), (r + attn.forward(x, mask)).to_vector<double>(), 1e-14);
  expect_values(ff.forward(x, r), (r + ff.forward(x)).to_vector<double>(), 1e-14);
  // One of another dtype too.
  expect_values(ff.forward(x, cast(r, DType::f32)), (cast(r, DType::f32) + ff.forward(x)).to_vector<double>(),
                1e-14);
  expect_error<ShapeError>([&] { ff.forward(x, slice(r, 1, 0, 1)); }, {"[linear]", "residual", "[2, 3, 4]"});
}

TEST_P(Transformer, SharedHeadsAreRepeatedOnes) {
  Rng rng(3);
  const auto config = MultiHeadAttentionConfig{12, 4}.with_causal(true).with_window(3).with_head_width(2);
  MultiHeadAttention<B> shared(backend, config.with_kv_heads(2), rng), whole(backend, config, rng);
  const auto repeated = [&](const Tensor<B>& rows) {  // those of heads: 4 of queries, 2 of keys, 2 of values
    std::vector<Tensor<B>> parts{slice(rows, 0, 0, 8)};
    for (const std::int64_t head : {4, 4, 5, 5, 6, 6, 7, 7})
      parts.push_back(slice(rows, 0, 2 * head, 2 * head + 2));
    return to_host(cat(parts, 0));
  };
  assign(whole.qkv.weight, repeated(shared.qkv.weight));
  assign(whole.qkv.bias, repeated(shared.qkv.bias));
  whole.proj.load_state(shared.proj.state());
  const auto x = randn(backend, {2, 5, 12}, rng);
  expect_values(shared.forward(x), whole.forward(x).template to_vector<double>(), 1e-6);
}

TEST_P(Transformer, RotationsSeeOnlyDistances) {
  // Texts that begin with the same tokens: moved by two positions, the last of them sees the same.
  Rng rng(3);
  const auto config = MultiHeadAttentionConfig{8, 2}.with_causal(true).with_window(3).with_rope(RopeConfig{});
  MultiHeadAttention<B> attn(backend, config, rng);
  const auto text = randn(backend, {1, 6, 8}, rng);
  const auto late = slice(attn.forward(text), 1, 4, 6),
             early = slice(attn.forward(slice(text, 1, 2, 6)), 1, 2, 4);
  expect_values(late, early.template to_vector<double>(), 1e-5);
  MultiHeadAttention<B> blind(backend, config.with_rope(std::nullopt), rng);
  blind.load_state(attn.state());
  EXPECT_GT(max(abs(blind.forward(text) - attn.forward(text))).item(), 1e-3);
}

TEST_P(Transformer, PartsThatDoNotFitAreNamed) {
  Rng rng(3);
  const auto refuses = [&](const MultiHeadAttentionConfig& config, const char* part) {
    expect_error<ValueError>([&] { MultiHeadAttention<B>(backend, config, rng); },
                             {"[MultiHeadAttention]", part});
  };
  refuses({8, 3}, "heads must divide dim");
  refuses(MultiHeadAttentionConfig{8, 4}.with_kv_heads(3), "these must divide those");
  refuses(MultiHeadAttentionConfig{8, 4}.with_window(-1), "window -1");
  refuses(MultiHeadAttentionConfig{12, 4}.with_rope(RopeConfig{}), "rope needs an even number");
}

TEST_P(Transformer, ABlockAddsToItsInput) {
  Rng rng(3);
  TransformerBlock<B> block(backend, {4, 1}, rng);
  NamedTensors state = block.state();
  for (const char* name : {"attn.proj.weight", "ff.down.weight", "ff.down.bias"})
    state[name] = to_host(zeros(backend, state.at(name).shape()));
  block.load_state(state);
  const auto x = randn(backend, {2, 3, 4}, rng);
  expect_values(block.forward(x), x.to_vector<double>());
}

TEST_P(Transformer, DropoutOfABlockIsRepeatableAndOffInInference) {
  const auto run = [&](Mode mode) {
    Rng rng(3);
    TransformerBlock<B> block(backend, TransformerBlockConfig{8, 2}.with_dropout(0.5), rng);
    block.set_mode(mode);
    return block.forward(ones(backend, {1, 2, 8})).to_vector();
  };
  EXPECT_EQ(run(Mode::training), run(Mode::training));
  EXPECT_NE(run(Mode::training), run(Mode::inference));
}

TEST_P(Transformer, GradientsAgreeWithCentralDifferences) {
  Rng rng(7);
  TransformerBlock<B> block(
      backend, TransformerBlockConfig{4, 2}.with_hidden(6).with_causal(true).with_dtype(DType::f64), rng);
  const auto x = randn(backend, {2, 3, 4}, rng, 0, 1, DType::f64);
  expect_gradients<B>(block, [&] { return block.forward(x); });
}

TEST_P(Transformer, HeadsMustDivideTheDimension) {
  Rng rng(1);
  expect_error<ValueError>([&] { MultiHeadAttention<B>(backend, {6, 4}, rng); }, {"dim 6 and 4 heads"});
  MultiHeadAttention<B> attn(backend, {4, 2}, rng);
  expect_error<ShapeError>([&] { attn.forward(ones(backend, {3, 4})); }, {"[MultiHeadAttention] x"});
}

}  // namespace
}  // namespace ferrite::nn
