// The ops of a step of generation: what the conformance suite does not reach.
#include <gtest/gtest.h>

#include "ferrite/ops/cached_attention.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/fused_linear.hpp"
#include "ferrite/ops/next_token.hpp"
#include "ferrite/stacks.hpp"
#include "io/io_test.hpp"

namespace ferrite {
namespace {

using testing::expect_error;
using T = Tensor<Cpu>;
using Ids = std::vector<std::int32_t>;

TEST(CachedAttention, IsAttentionToAllThatWasRead) {
  Cpu b;
  Rng rng(1);
  const std::int64_t capacity = 7, heads = 4, groups = 2;
  const T keys = randn(b, {2, groups, capacity, 8}, rng), values = randn(b, {2, groups, capacity, 8}, rng);
  const T q = randn(b, {2, heads, 2, 8}, rng), k = randn(b, {2, groups, 2, 8}, rng),
          v = randn(b, {2, groups, 2, 8}, rng);
  const Ids read = {3, 5};
  const auto out = eval_all(op::CachedAttention{0.3}, q, k, v, keys, values, from_vector(b, read));
  for (std::int64_t n = 0; n < 2; ++n) {
    const std::int64_t before = read[static_cast<std::size_t>(n)];
    const auto all_of = [&](const T& cache, const T& rows) {
      const T all =
          cat(std::vector<T>{slice(slice(cache, 0, n, n + 1), 2, 0, before), slice(rows, 0, n, n + 1)}, 2);
      // Heads 0 and 1 use group 0, heads 2 and 3 group 1.
      return reshape(expand(unsqueeze(all, 2), {1, groups, 2, before + 2, 8}), {1, heads, before + 2, 8});
    };
    const T expected = attention(slice(q, 0, n, n + 1), all_of(keys, k), all_of(values, v),
                                 AttentionConfig{}.with_causal(true).with_scale(0.3));
    EXPECT_LT(item(max(abs(slice(out[0], 0, n, n + 1) - expected))), 1e-5) << n;
    const T stored = slice(slice(out[1], 0, n, n + 1), 2, before, before + 2);
    EXPECT_EQ(stored.to_vector(), slice(k, 0, n, n + 1).to_vector());
  }
  // What is not new stays.
  EXPECT_EQ(slice(out[2], 2, 0, 3).to_vector(), slice(values, 2, 0, 3).to_vector());
}

TEST(CachedAttention, WritesIntoItsCache) {
  Cpu b;
  Rng rng(2);
  const T q = randn(b, {1, 2, 1, 4}, rng), k = randn(b, {1, 2, 1, 4}, rng),
          cache = zeros(b, {1, 2, 3, 4}, DType::bf16), values = clone(cache), read = from_vector(b, Ids{1}),
          o = zeros(b, {1, 2, 1, 4});
  const Array* in[] = {&q.primitive(),     &k.primitive(),      &k.primitive(),
                       &cache.primitive(), &values.primitive(), &read.primitive()};
  Array out[] = {o.primitive(), cache.primitive(), values.primitive()};
  evaluate_in_place(b, op::CachedAttention{1}, Ins(in, 6), Outs(out, 3));
  EXPECT_EQ(slice(cache, 2, 1, 2).to_vector(), cast(k, DType::bf16).to_vector());
  EXPECT_EQ(item(sum(abs(cast(slice(cache, 2, 2, 3), DType::f32)))), 0);
}

TEST(CachedAttention, ErrorsSayWhatIsWrong) {
  Cpu b;
  const auto call = [&](const Shape& q, const Shape& k, const Shape& keys, DType read = DType::i32) {
    eval(op::CachedAttention{}, zeros(b, q), zeros(b, k), zeros(b, k), zeros(b, keys), zeros(b, keys),
         zeros(b, {q[0]}, read));
  };
  expect_error<ShapeError>([&] { call({1, 3, 1, 4}, {1, 2, 1, 4}, {1, 2, 5, 4}); }, {"must divide"});
  expect_error<ShapeError>([&] { call({1, 2, 6, 4}, {1, 2, 6, 4}, {1, 2, 5, 4}); }, {"room"});
  expect_error<DTypeError>([&] { call({1, 2, 1, 4}, {1, 2, 1, 4}, {1, 2, 5, 4}, DType::i64); }, {"read"});
  const T x = zeros(b, {1, 1, 1, 4});
  expect_error<ValueError>(
      [&] {
        eval(op::CachedAttention{1, -1}, x, x, x, x, x, zeros(b, {1}, DType::i32));
      },
      {"[cached_attention]", "window of -1", "0 for all"});
}

TEST(FusedLinear, IsItsParts) {
  Cpu b;
  Rng rng(3);
  const T x = randn(b, {3, 8}, rng), w = randn(b, {5, 8}, rng), g = randn(b, {8}, rng),
          h = randn(b, {8}, rng), bias = randn(b, {5}, rng), residual = randn(b, {3, 5}, rng);
  op::FusedLinear op;
  op.norm = RowNorm::layer, op.eps = 1e-3, op.activation = Activation::gelu, op.bias = op.residual = true;
  const T expected = linear(layer_norm(x, g, h, 1e-3), w, bias, Activation::gelu) + residual;
  EXPECT_EQ(eval(op, x, w, g, h, bias, residual).to_vector(), expected.to_vector());
  op.norm = RowNorm::rms;
  EXPECT_EQ(eval(op, x, w, g, bias, residual).to_vector(),
            (linear(rms_norm(x, g, 1e-3), w, bias, Activation::gelu) + residual).to_vector());
  // The product has the weight's dtype, the rest that of the rows.
  EXPECT_EQ(eval(op::FusedLinear{}, x, cast(w, DType::bf16)).dtype(), DType::f32);
  expect_error<ShapeError>([&] { eval(op, x, w, g); }, {"[fused_linear]"});
  expect_error<DTypeError>([&] { eval(op, x, w, g, cast(bias, DType::f16), residual); }, {"bias"});
}

TEST(FusedLinear, TakesAQuantizedWeightWithItsScale) {
  Cpu b;
  Rng rng(4);
  const T x = randn(b, {3, 16}, rng), g = randn(b, {16}, rng), bias = randn(b, {5}, rng),
          residual = randn(b, {3, 5}, rng);
  const auto q = quantize_rows(randn(b, {5, 16}, rng));
  op::FusedLinear op;
  op.norm = RowNorm::rms, op.activation = Activation::silu, op.bias = op.residual = op.quantized = true;
  const T expected =
      quantized_linear(rms_norm(x, g, op.eps), q.weight, q.scale, bias, Activation::silu) + residual;
  EXPECT_EQ(eval(op, x, q.weight, q.scale, g, bias, residual).to_vector(), expected.to_vector());
  expect_error<DTypeError>([&] { eval(op, x, cast(q.weight, DType::f32), q.scale, g, bias, residual); },
                           {"[fused_linear]", "weight", "i8"});
  expect_error<ShapeError>([&] { eval(op, x, q.weight, g, g, bias, residual); }, {"scale"});
  expect_error<DTypeError>([&] { eval(op::FusedLinear{}, x, q.weight); }, {"weight"});
}

struct NextToken : ::testing::Test {
  Cpu b;
  /// The tokens that follow texts of one token.
  Ids picked(const op::NextToken& op, const T& scores, const std::vector<double>& uniforms, const T& seen) {
    const std::int64_t n = scores.size(0);
    const T text = from_vector(b, Ids(static_cast<std::size_t>(2 * n), -1), {n, 2});
    const T numbers = expand(reshape(from_vector(b, uniforms), {n, 1}), {n, 2});
    return eval_all(op, scores, text, zeros(b, {n}, DType::i32), numbers, seen)[3].to_vector<std::int32_t>();
  }
};

TEST_F(NextToken, DrawsByProbability) {
  constexpr int rows = 4000;
  // Probabilities .1 .2 .5 .2; without the first, 2 : 5 : 2.
  const T scores = expand(log(from_vector(b, {1.f, 2.f, 5.f, 2.f})), {rows, 4});
  std::vector<double> uniforms;
  for (std::uint64_t i = 0; i < rows; ++i) uniforms.push_back(uniform_at<double>({11, 0}, i));
  const auto expect = [&](const op::NextToken& op, const std::vector<double>& shares) {
    std::vector<double> counts(4);
    for (const std::int32_t id : picked(op, scores, uniforms, zeros(b, {rows, 4}, DType::bool_)))
      ++counts[static_cast<std::size_t>(id)];
    double chi_square = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      if (shares[i] == 0) {
        EXPECT_EQ(counts[i], 0);
        continue;
      }
      chi_square += std::pow(counts[i] - rows * shares[i], 2) / (rows * shares[i]);
    }
    EXPECT_LT(chi_square, 16.3);  // 3 degrees of freedom: one of a thousand is above
  };
  expect({}, {0.1, 0.2, 0.5, 0.2});
  expect({1, 3}, {0, 2 / 9.0, 5 / 9.0, 2 / 9.0});
  expect({1, 0, 0.65}, {0, 2 / 7.0, 5 / 7.0, 0});
}

TEST_F(NextToken, KeepsTheBooks) {
  const T scores = from_vector(b, {{0.f, 3.f, 1.f}, {0.f, 3.f, 1.f}, {1.f, NAN, 2.f}});
  const T text = from_vector(b, Ids{2, -1, -1, 2, 0, -1, 0, 0, -1}, {3, 3});
  const T seen = zeros(b, {3, 3}, DType::bool_), uniforms = zeros(b, {3, 3}, DType::f64);
  const auto out = eval_all(op::NextToken{0}, scores, text, from_vector(b, Ids{0, 0, 1}), uniforms, seen);
  // Drawn; given; no token, because a score is NaN.
  EXPECT_EQ(out[0].to_vector<std::int32_t>(), (Ids{2, 1, -1, 2, 0, -1, 0, 0, -1}));
  EXPECT_EQ(out[1].to_vector<std::int32_t>(), (Ids{1, 1, 2}));
  EXPECT_EQ(out[2].to_vector<std::int32_t>(), (Ids{0, 1, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(out[3].to_vector<std::int32_t>(), (Ids{1, 0, -1}));
  expect_error<ValueError>(
      [&] {
        eval_all(op::NextToken{0}, scores, text, from_vector(b, Ids{0, 2, 0}), uniforms, seen);
      },
      {"[next_token]"});
}

}  // namespace
}  // namespace ferrite
