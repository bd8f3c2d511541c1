// Generation on the GPU: its kernels against their compositions, and recorded steps against steps one by one.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "backend_cuda/contraction_support.hpp"
#include "ferrite/nn/generate.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::testing {
namespace {

using Ids = std::vector<std::int32_t>;

struct CudaGeneration : CudaContraction {
  /// All outputs of an op on the GPU, by its kernel, and on Reference. Integers must be equal.
  template <class Op>
  void expect_all(const Op& op, const std::vector<Gpu>& in, double tolerance) {
    std::vector<Truth> truths;
    for (const Gpu& x : in) truths.push_back(truth(x));
    ASSERT_TRUE(accepts(*cuda, op, detail::metas_of(refs_of(in).get()))) << format_attributes(op);
    const auto got = eval_list(op, TensorSpan<Cuda>(in));
    const auto want = eval_list(op, TensorSpan<Reference>(truths));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      if (is_floating(got[k].dtype()))
        expect_near(got[k], want[k], tolerance);
      else
        EXPECT_EQ(got[k].template to_vector<std::int64_t>(), want[k].template to_vector<std::int64_t>())
            << "output " << k << " of " << format_attributes(op);
    }
  }
  struct Refs {
    std::vector<const Array*> all;
    Ins get() const { return Ins(all.data(), all.size()); }
  };
  static Refs refs_of(const std::vector<Gpu>& in) {
    Refs refs;
    for (const Gpu& x : in) refs.all.push_back(&x.primitive());
    return refs;
  }
};

TEST_F(CudaGeneration, CachedAttentionOfEveryDepthLengthAndGroup) {
  struct Sizes {
    std::int64_t texts, heads, groups, queries, depth, capacity;
    Ids read;
    std::int64_t window = 0;
  };
  const std::vector<Sizes> sizes = {{1, 12, 12, 1, 64, 1024, {0}},
                                    {1, 12, 12, 1, 64, 1024, {1023}},
                                    {1, 12, 12, 1, 64, 1024, {500}},
                                    {3, 4, 2, 1, 64, 200, {0, 77, 199}},
                                    {2, 8, 2, 3, 128, 130, {127, 5}},
                                    {2, 6, 1, 1, 256, 50, {49, 1}},
                                    {1, 2, 2, 4, 8, 9, {5}},
                                    {2, 3, 3, 1, 40, 33, {32, 31}},
                                    {70, 12, 12, 1, 64, 40, Ids(70, 20)},
                                    {2, 12, 12, 1, 64, 1024, {1023, 3}, 100},
                                    {2, 8, 2, 3, 128, 130, {127, 5}, 1},
                                    {1, 4, 4, 2, 64, 1024, {700}, 513},
                                    {1, 4, 4, 2, 64, 64, {62}, 5000}};
  for (const Sizes& s : sizes) {
    for (const auto& [q, cache] : {std::pair{DType::bf16, DType::bf16},
                                   {DType::f16, DType::f16},
                                   {DType::f32, DType::f32},
                                   {DType::f32, DType::bf16},
                                   {DType::f32, DType::f16}}) {
      SCOPED_TRACE(to_string(Shape{s.texts, s.heads, s.groups, s.queries, s.depth, s.capacity}) + " " +
                   std::string(to_string(q)) + " " + std::string(to_string(cache)));
      const Shape rows{s.texts, s.groups, s.queries, s.depth}, all{s.texts, s.groups, s.capacity, s.depth};
      // As the projection gives them: heads behind positions.
      const Gpu queries = transpose(random({s.texts, s.queries, s.heads, s.depth}, q), 1, 2);
      expect_all(op::CachedAttention{1 / std::sqrt(static_cast<double>(s.depth)), s.window},
                 {queries, random(rows, q), random(rows, q), random(all, cache), random(all, cache),
                  from_vector(*cuda, s.read)},
                 2 * tolerance_of(cache, s.capacity + s.depth));
    }
  }
}

TEST_F(CudaGeneration, CachedAttentionWritesOnlyTheNewRows) {
  const Gpu q = random({2, 4, 1, 64}, DType::bf16), k = random({2, 4, 1, 64}, DType::bf16);
  const Gpu keys = random({2, 4, 96, 64}, DType::bf16), values = random({2, 4, 96, 64}, DType::bf16);
  const auto before = keys.to_vector();
  const Gpu read = from_vector(*cuda, Ids{10, 95}), o = zeros(*cuda, {2, 4, 1, 64}, DType::bf16);
  const Array* in[] = {&q.primitive(),    &k.primitive(),      &k.primitive(),
                       &keys.primitive(), &values.primitive(), &read.primitive()};
  Array out[] = {o.primitive(), keys.primitive(), values.primitive()};
  evaluate_in_place(*cuda, op::CachedAttention{0.125}, Ins(in, 6), Outs(out, 3));
  const auto after = keys.to_vector(), rows = k.to_vector();
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t h = 0; h < 4; ++h)
      for (std::size_t p = 0; p < 96; ++p)
        for (std::size_t c = 0; c < 64; ++c) {
          const std::size_t at = ((n * 4 + h) * 96 + p) * 64 + c;
          const bool is_new = p == (n == 0 ? 10u : 95u);
          ASSERT_EQ(after[at], is_new ? rows[(n * 4 + h) * 64 + c] : before[at])
              << n << " " << h << " " << p << " " << c;
        }
}

TEST_F(CudaGeneration, FusedLinearOfEverySize) {
  for (const auto& [x, w] : {std::pair{DType::bf16, DType::bf16},
                             {DType::f16, DType::f16},
                             {DType::f32, DType::f32},
                             {DType::f32, DType::bf16},
                             {DType::f32, DType::f16}}) {
    for (const Shape& s : {Shape{1, 768, 2304},
                           {1, 3072, 768},
                           {1, 768, 50304},
                           {1, 1600, 4800},
                           {1, 40, 9},
                           {1, 6144, 64},
                           {1, 16384, 40},
                           {2, 768, 768},
                           {3, 64, 33},
                           {5, 2048, 40},
                           {8, 768, 3072},
                           {8, 8, 1},
                           {7, 40, 9001}}) {
      for (const RowNorm norm : {RowNorm::none, RowNorm::layer, RowNorm::rms}) {
        SCOPED_TRACE(std::string(to_string(x)) + " " + std::string(to_string(w)) + " " + to_string(s) + " " +
                     std::string(op::to_string(norm)));
        op::FusedLinear op;
        op.norm = norm;
        op.activation = norm == RowNorm::none ? Activation::none : Activation::gelu;
        op.bias = norm != RowNorm::rms;
        op.residual = norm != RowNorm::layer;
        std::vector<Gpu> in = {random({s[0], s[1]}, x), random({s[2], s[1]}, w)};
        if (norm != RowNorm::none) in.push_back(random({s[1]}, x));
        if (norm == RowNorm::layer) in.push_back(random({s[1]}, x));
        if (op.bias) in.push_back(random({s[2]}, x));
        if (op.residual) in.push_back(random({s[0], s[2]}, x));
        expect_all(op, in, 4 * tolerance_of(w, s[1]));
      }
    }
  }
}

TEST_F(CudaGeneration, FusedLinearWithWeightsOf8Bits) {
  for (const DType x : {DType::bf16, DType::f16, DType::f32}) {
    for (const Shape& s : {Shape{768, 2304},
                           {3072, 768},
                           {768, 50304},
                           {16, 1},
                           {1600, 9},
                           {4096, 40},
                           {4080, 1001},
                           {8192, 1001},
                           {8208, 5}}) {
      for (const RowNorm norm : {RowNorm::none, RowNorm::layer, RowNorm::rms}) {
        SCOPED_TRACE(std::string(to_string(x)) + " " + to_string(s) + " " + std::string(op::to_string(norm)));
        op::FusedLinear op;
        op.norm = norm, op.quantized = true;
        op.activation = norm == RowNorm::none ? Activation::none : Activation::gelu;
        op.bias = norm != RowNorm::rms;
        op.residual = norm != RowNorm::layer;
        const auto q = quantize_rows(random({s[1], s[0]}, DType::f32));
        std::vector<Gpu> in = {random({1, s[0]}, x), q.weight, q.scale};
        if (norm != RowNorm::none) in.push_back(random({s[0]}, x));
        if (norm == RowNorm::layer) in.push_back(random({s[0]}, x));
        if (op.bias) in.push_back(random({s[1]}, x));
        if (op.residual) in.push_back(random({1, s[1]}, x));
        if (s[0] > 8192)
          EXPECT_FALSE(accepts(*cuda, op, detail::metas_of(refs_of(in).get())));
        else
          expect_all(op, in, 4 * tolerance_of(x, s[0]));
      }
    }
  }
}

TEST_F(CudaGeneration, FusedLinearTakesViews) {
  const Gpu wide = random({6, 80}, DType::bf16);
  // Columns that begin at no multiple of 16 bytes, a transposed weight, and rows that are far apart.
  for (const Gpu& w :
       {slice(wide, 1, 3, 67), slice(wide, 1, 8, 72), transpose(random({64, 6}, DType::bf16), 0, 1)})
    for (const std::int64_t rows : {1, 2})
      expect_all(op::FusedLinear{}, {slice(random({rows, 70}, DType::bf16), 1, 5, 69), w},
                 2 * tolerance_of(DType::bf16, 64));
  const auto q = quantize_rows(random({6, 80}, DType::f32));
  op::FusedLinear quantized;
  quantized.quantized = true;
  for (const std::int64_t start : {16, 3})
    expect_all(quantized, {random({1, 64}, DType::bf16), slice(q.weight, 1, start, start + 64), q.scale},
               2 * tolerance_of(DType::bf16, 64));
}

TEST_F(CudaGeneration, NextTokenIsThatOfTheReference) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t vocab : {1, 7, 1000, 50257, 70001}) {
      const std::int64_t n = 5;
      const Gpu scores = slice(random({n, vocab + 3}, dtype) * 4, 1, 0, vocab);
      const Gpu text = from_vector(*cuda, Ids{4, -1, 3, -1, -1, 2, 0, -1, 1, 1, -1, -1, 0, 0, -1}, {n, 3});
      const Gpu uniforms = cast(rand(*cuda, {n, 3}, rng, 0.01, 0.99), DType::f64);
      const Gpu seen = rand(*cuda, {n, vocab}, rng) < 0.2, read = from_vector(*cuda, Ids{0, 0, 1, 1, 1});
      for (const op::NextToken& op : {op::NextToken{}, op::NextToken{0}, op::NextToken{0.8, 50},
                                      op::NextToken{1, 0, 0.9}, op::NextToken{0, 0, 1, 1.4},
                                      op::NextToken{1.1, 40, 0.7, 1.2, 600}, op::NextToken{1, 5000, 0.5}}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(vocab));
        expect_all(op, {scores, text, read, uniforms, seen}, 0);
      }
    }
  }
}

TEST_F(CudaGeneration, NextTokenOfEqualScoresAndEveryNumberOfLikeliest) {
  // Few values: far more scores are equal to the last of the likeliest than can be put together. That is
  // tried up to 512 of them.
  const Gpu text = full(*cuda, {2, 2}, -1, DType::i32), read = zeros(*cuda, {2}, DType::i32);
  for (const std::int64_t vocab : {513, 1030, 50257}) {
    for (const double values : {1.0, 3.0, 40.0, 1e6}) {
      const Gpu scores = floor(rand(*cuda, {2, vocab}, rng) * values);
      const Gpu uniforms = cast(rand(*cuda, {2, 2}, rng, 0.01, 0.99), DType::f64);
      for (const std::int64_t k : {1, 2, 50, 511, 512, 513, 1023, 1024, 1025, 50256}) {
        if (k > vocab) continue;
        for (const double top_p : {1.0, 0.6}) {
          SCOPED_TRACE(fmt::format("{} tokens, {} values, k {}, p {}", vocab, values, k, top_p));
          expect_all(op::NextToken{1, k, top_p},
                     {scores, text, read, uniforms, zeros(*cuda, {2, vocab}, DType::bool_)}, 0);
        }
      }
    }
  }
}

TEST_F(CudaGeneration, NextTokenDrawsByProbability) {
  constexpr int rows = 4000;
  const Gpu scores = expand(log(from_vector(*cuda, {1.f, 2.f, 5.f, 2.f})), {rows, 4});
  std::vector<double> uniforms;
  for (std::uint64_t i = 0; i < rows; ++i) uniforms.insert(uniforms.end(), 2, uniform_at<double>({11, 0}, i));
  const auto expect = [&](const op::NextToken& op, const std::vector<double>& shares) {
    const Ids ids =
        eval_all(op, scores, full(*cuda, {rows, 2}, -1, DType::i32), zeros(*cuda, {rows}, DType::i32),
                 from_vector(*cuda, uniforms, {rows, 2}), zeros(*cuda, {rows, 4}, DType::bool_))[3]
            .to_vector<std::int32_t>();
    double chi_square = 0;
    for (std::int32_t id = 0; id < 4; ++id) {
      const double share = shares[static_cast<std::size_t>(id)];
      const auto count = static_cast<double>(std::ranges::count(ids, id));
      if (share > 0) chi_square += std::pow(count - rows * share, 2) / (rows * share);
      EXPECT_TRUE(share > 0 || count == 0) << id;
    }
    EXPECT_LT(chi_square, 16.3);  // 3 degrees of freedom: one of a thousand is above
  };
  expect({}, {0.1, 0.2, 0.5, 0.2});
  expect({1, 3}, {0, 2 / 9.0, 5 / 9.0, 2 / 9.0});
  expect({1, 0, 0.65}, {0, 2 / 7.0, 5 / 7.0, 0});
}

TEST_F(CudaGeneration, NextTokenByClustersOfEverySize) {
  // The fewer texts there are, the more blocks share one. Some scores cannot be used, or all but three cannot
  // be drawn; some tokens are given.
  constexpr std::int64_t vocab = 8193;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t texts : {1, 20, 40, 200}) {
    std::vector<float> scores = random({texts, vocab}, DType::f32).to_vector<float>();
    Ids given;
    for (std::int64_t n = 0; n < texts; ++n) {
      float* const own = scores.data() + n * vocab;
      if (n % 6 == 1) own[vocab - 1] = NAN;
      if (n % 6 == 2) own[5] = infinity;
      if (n % 6 == 3) std::fill_n(own, vocab, -infinity);
      if (n % 6 == 4) {
        std::fill_n(own, vocab, -infinity);
        own[7] = own[4000] = 1, own[8000] = 2;
      }
      given.insert(given.end(), {0, n % 6 == 5 ? 9 : -1});
    }
    const Gpu all = from_vector(*cuda, scores, {texts, vocab}), text = from_vector(*cuda, given, {texts, 2});
    const Gpu uniforms = cast(rand(*cuda, {texts, 2}, rng, 0.01, 0.99), DType::f64);
    const Gpu seen = zeros(*cuda, {texts, vocab}, DType::bool_);
    for (const op::NextToken& op :
         {op::NextToken{0}, op::NextToken{1, 50}, op::NextToken{0.8, 200}, op::NextToken{1, 512, 0.7}}) {
      SCOPED_TRACE(std::to_string(texts));
      expect_all(op, {all, text, zeros(*cuda, {texts}, DType::i32), uniforms, seen}, 0);
      const Gpu beyond = ones(*cuda, {texts}, DType::i32);
      EXPECT_THROW(eval_all(op, all, text, beyond, uniforms, seen)[3].to_vector<std::int32_t>(), ValueError);
    }
  }
}

TEST_F(CudaGeneration, NextTokenReportsNaNAndPlacesBeyondTheText) {
  const Gpu scores = from_vector(*cuda, {{0.f, NAN, 1.f}}), seen = zeros(*cuda, {1, 3}, DType::bool_);
  const Gpu text = full(*cuda, {1, 2}, -1, DType::i32), uniforms = zeros(*cuda, {1, 2}, DType::f64);
  const auto at = [&](std::int32_t read) {
    return eval_all(op::NextToken{}, scores, text, from_vector(*cuda, Ids{read}), uniforms, seen)[3]
        .to_vector<std::int32_t>();
  };
  EXPECT_EQ(at(0), (Ids{-1}));
  EXPECT_THROW(at(1), ValueError);
}

/// Models of several dtypes and stacks: recorded and not, alone and in batches.
template <class B>
void expect_recorded_steps_are_steps(B backend, const nn::GptConfig& sizes) {
  Rng rng(5);
  nn::Gpt<B> model(backend, sizes, rng);
  const std::vector<Ids> prompts = {{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11}};
  for (const auto& config :
       {nn::GenerateConfig{}.with_tokens(3), nn::GenerateConfig{}.with_tokens(40).with_temperature(0),
        nn::GenerateConfig{}.with_tokens(150).with_seed(3).with_top_k(20).with_top_p(0.9),  // restarts
        nn::GenerateConfig{}.with_tokens(40).with_repetition_penalty(1.3).with_stop_tokens({7, 8, 9})}) {
    std::map<std::size_t, Ids> seen;
    const auto recorded = nn::generate(model, prompts, config, [&](std::size_t text, std::int32_t token) {
      seen[text].push_back(token);
      return nn::Next::more;
    });
    const auto eager = nn::generate_on_device(model, prompts, config, {}, false);
    const auto again = nn::generate(model, prompts, config);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(recorded[i].tokens, eager[i].tokens) << i;
      EXPECT_EQ(recorded[i].stopped, eager[i].stopped) << i;
      EXPECT_EQ(recorded[i].tokens, again[i].tokens) << i;
      EXPECT_EQ(seen[i], recorded[i].tokens) << i;
    }
  }
}
nn::GptConfig small() {
  return nn::GptConfig{}.with_vocab(300).with_context(48).with_layers(2).with_heads(4).with_dim(64);
}

TEST_F(CudaGeneration, RecordedStepsAreSteps) {
  expect_recorded_steps_are_steps(*cuda, small());
  expect_recorded_steps_are_steps(*cuda, small().with_dtype(DType::bf16));
  expect_recorded_steps_are_steps(Autodiff<Cuda>(), small());
  expect_recorded_steps_are_steps(Autocast<Cuda>(), small());
  expect_recorded_steps_are_steps(AnyBackend("cuda"), small().with_dtype(DType::f16));
  expect_recorded_steps_are_steps(*cuda, small().with_heads(8).with_dim(40));  // heads of 5: composed
  expect_recorded_steps_are_steps(*cuda, small().with_window(7));
  expect_recorded_steps_are_steps(*cuda, small().with_quantized(true));
  expect_recorded_steps_are_steps(Autocast<Cuda>(), small().with_quantized(true));
  expect_recorded_steps_are_steps(*cuda, small().with_quantized(true).with_dtype(DType::bf16));
  const auto llama = nn::GptConfig::llama().with_vocab(300).with_context(48).with_layers(2).with_heads(4);
  expect_recorded_steps_are_steps(*cuda, llama.with_kv_heads(2).with_dim(64).with_hidden(96));
}

TEST_F(CudaGeneration, TextsAreThoseOfTheCpu) {
  for (const nn::GptConfig& sizes : {small(), small().with_window(5)}) {
    Cpu cpu;
    Rng weights(6);
    nn::Gpt<Cpu> model(cpu, sizes, weights);
    auto on_gpu = nn::Gpt<Cuda>::blank(*cuda, sizes);
    on_gpu.load_state(model.state());
    const std::vector<Ids> prompts = {{1, 2, 3}, {4}};
    for (const auto& config : {nn::GenerateConfig{}.with_tokens(40).with_temperature(0),
                               nn::GenerateConfig{}.with_tokens(40).with_top_k(30)}) {
      const auto expected = nn::generate(model, prompts, config),
                 texts = nn::generate(on_gpu, prompts, config);
      for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(texts[i].tokens, expected[i].tokens) << i;
    }
  }
}

TEST_F(CudaGeneration, ACallbackStopsAndParametersMayChangeBetweenTexts) {
  Rng weights(7);
  Autocast<Cuda> backend;
  nn::Gpt<Autocast<Cuda>> model(backend, small(), weights);
  const auto config = nn::GenerateConfig{}.with_tokens(40);
  const auto all = nn::generate(model, {{1}}, config);
  int count = 0;
  const auto some = nn::generate(model, {{1}}, config, [&](std::size_t, std::int32_t) {
    return ++count == 10 ? nn::Next::stop : nn::Next::more;
  });
  EXPECT_EQ(some[0].tokens, Ids(all[0].tokens.begin(), all[0].tokens.begin() + 10));
  EXPECT_TRUE(some[0].stopped);
  // New weights, through the 16-bit copies.
  Rng other(8);
  nn::Gpt<Autocast<Cuda>> second(backend, small(), other);
  model.load_state(second.state());
  EXPECT_EQ(nn::generate(model, {{1}}, config)[0].tokens, nn::generate(second, {{1}}, config)[0].tokens);
}

}  // namespace
}  // namespace ferrite::testing
