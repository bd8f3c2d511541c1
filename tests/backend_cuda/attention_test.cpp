// Attention on the GPU: sizes around its tiles, masks of every kind, shared heads, windows, layouts, sinks.
#include "backend_cuda/contraction_support.hpp"
#include "ferrite/ops/cross_attention.hpp"
#include "ferrite/ops/self_attention.hpp"

namespace ferrite::testing {
namespace {

struct CudaAttention : CudaContraction {
  /// The keys of a query that sees none of them get weight 0 everywhere, forward and backward.
  void expect_attention(const Gpu& q, const Gpu& k, const Gpu& v, bool causal, const Gpu& mask = {},
                        std::int64_t window = 0) {
    const op::Attention op{causal, 0.3, window};
    ASSERT_TRUE(mask.defined() || accepts(*cuda, op, std::vector{q.meta(), k.meta(), v.meta()}));
    const Truth tq = truth(q), tk = truth(k), tv = truth(v);
    const Truth tm = mask.defined() ? (mask.dtype() == DType::bool_ ? to(host, mask) : truth(mask)) : Truth();
    const auto got = mask.defined() ? eval_all(op, q, k, v, mask) : eval_all(op, q, k, v);
    const auto want = mask.defined() ? eval_all(op, tq, tk, tv, tm) : eval_all(op, tq, tk, tv);
    const double tolerance = 2 * tolerance_of(q.dtype(), q.size(3) + k.size(2));
    expect_near(got[0], want[0], tolerance);
    expect_near(got[1], want[1], tolerance_of(DType::f32, q.size(3) + k.size(2)));

    const op::AttentionBackward backward{causal, 0.3, window};
    const Gpu grad = random(got[0].shape(), q.dtype());
    const auto backward_of = [&](const auto& g, const auto& a, const auto& b, const auto& c, const auto& o,
                                 const auto& lse, const auto& m) {
      return m.defined() ? eval_all(backward, g, a, b, c, o, lse, m) : eval_all(backward, g, a, b, c, o, lse);
    };
    const auto truths = backward_of(truth(grad), tq, tk, tv, truth(got[0]), truth(got[1]), tm);
    const auto results = backward_of(grad, q, k, v, got[0], got[1], mask);
    for (std::size_t i = 0; i < 3; ++i) {
      SCOPED_TRACE("gradient " + std::to_string(i));
      expect_near(results[i], truths[i], 2 * tolerance, 0.1);  // equal keys leave nothing but rounding
    }
  }
};

TEST_F(CudaAttention, SizesAroundTheTiles) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [t, s, d, e] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                                     {64, 64, 64, 64},
                                     {65, 130, 40, 33},
                                     {130, 65, 100, 128},
                                     {7, 200, 128, 3}}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{t, s, d, e}) +
                     (causal ? " causal" : ""));
        expect_attention(random({2, 3, t, d}, dtype), random({2, 3, s, d}, dtype),
                         random({2, 3, s, e}, dtype), causal);
      }
    }
  }
}

TEST_F(CudaAttention, LongSumsOfF32KeepItsPrecision) {
  const Gpu q = random({1, 2, 128, 64}), k = random({1, 2, 2048, 64}), v = random({1, 2, 2048, 64});
  const op::Attention op{false, 0.125};
  const Truth want = eval(op, truth(q), truth(k), truth(v)), off = truth(eval(op, q, k, v)) - want;
  // Tensor cores cut off what does not fit into a sum: one sum over all keys would be off by 1e-5.
  EXPECT_LT(std::sqrt(sum(off * off).item() / sum(want * want).item()), 1.5e-6);
}

TEST_F(CudaAttention, SixteenBitsOnTensorCores) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const auto& [t, s, d] :
         {std::array<std::int64_t, 3>{128, 128, 64}, {256, 256, 128}, {128, 384, 40}}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{t, s, d}) +
                     (causal ? " causal" : ""));
        expect_attention(random({3, 4, t, d}, dtype), random({3, 4, s, d}, dtype),
                         random({3, 4, s, d}, dtype), causal);
      }
    }
  }
}

TEST_F(CudaAttention, PackedTensorsAreReadAndWrittenInPlace) {
  for (const std::int64_t t : {100, 512}) {
    const Gpu packed = random({2, t, 3, 4, 64}, DType::bf16);
    const op::SelfAttention op{true, 0.125};
    const auto got = eval_all(op, packed);
    const auto truths = eval_all(op, truth(packed));
    const double tolerance = 2 * tolerance_of(DType::bf16, 64 + t);
    expect_near(got[0], truths[0], tolerance);
    const Gpu grad = random(got[0].shape(), DType::bf16);
    const op::SelfAttentionBackward backward{true, 0.125};
    const Gpu gradient = eval(backward, grad, packed, got[0], got[1]);
    const Truth true_gradient = eval(backward, truth(grad), truth(packed), truth(got[0]), truth(got[1]));
    expect_near(gradient, true_gradient, 2 * tolerance, 0.1);
    // The same bits again, and twice the gradient where it is added.
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(eval(backward, grad, packed, got[0], got[1]).to_vector<float>(), gradient.to_vector<float>());
    const std::vector<Gpu> sinks = {eval(backward, grad, packed, got[0], got[1])};
    run_into(*cuda, backward, {grad, packed, got[0], got[1]}, sinks, 1);
    expect_near(sinks[0], 2 * true_gradient, 4 * tolerance, 0.1);
  }
}

TEST_F(CudaAttention, TheFastestGradientIsAsAccurate) {
  const Gpu packed = random({2, 512, 3, 4, 64}, DType::bf16);
  cuda->set_determinism(Determinism::fastest);
  const auto forward = eval_all(op::SelfAttention{true, 0.125}, packed);
  const Gpu grad = random(forward[0].shape(), DType::bf16);
  const op::SelfAttentionBackward backward{true, 0.125};
  const Gpu gradient = eval(backward, grad, packed, forward[0], forward[1]);
  cuda->set_determinism(Determinism::same_bits);
  const Truth want = eval(backward, truth(grad), truth(packed), truth(forward[0]), truth(forward[1]));
  expect_near(gradient, want, 4 * tolerance_of(DType::bf16, 576), 0.1);
}

TEST_F(CudaAttention, MasksOfEveryKind) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Gpu q = random({2, 2, 70, 16}, dtype), k = random({2, 2, 90, 16}, dtype),
              v = random({2, 2, 90, 24}, dtype);
    expect_attention(q, k, v, false, random({70, 90}));
    expect_attention(q, k, v, true, random({2, 1, 70, 1}, dtype));
    const Gpu keep = random({2, 1, 70, 90}) > 0.2;
    expect_attention(q, k, v, false, keep);
    expect_attention(q, k, v, true, keep);
    expect_attention(q, k, v, false, zeros(*cuda, {70, 90}, DType::bool_));
    expect_attention(q, k, v, false, random({2, 1, 70, 1}) > 0);  // some queries see nothing
  }
}

TEST_F(CudaAttention, LongMasks) {
  const double hidden = -std::numeric_limits<double>::infinity();
  for (const auto& [t, s, d] :
       {std::array<std::int64_t, 3>{256, 256, 64}, {384, 256, 128}, {256, 200, 32}, {256, 256, 256}}) {
    SCOPED_TRACE(to_string(Shape{t, s, d}));
    const Gpu q = random({2, 4, t, d}, DType::bf16), k = random({2, 4, s, d}, DType::bf16),
              v = random({2, 4, s, d}, DType::bf16);
    const Gpu keep = random({2, 1, t, s}) > 0.2, of_queries = random({2, 4, t, 1}) > 0,
              of_keys = random({2, 1, 1, s}) > 0;
    expect_attention(q, k, v, false, keep);
    expect_attention(q, k, v, t == s, of_keys);
    expect_attention(q, k, v, false, of_queries);  // some queries see nothing
    expect_attention(q, k, v, false, zeros(*cuda, {t, s}, DType::bool_));
    const Gpu added = random({t, s}, DType::bf16);
    expect_attention(q, k, v, t == s, added);
    expect_attention(q, k, v, false, where(keep, added, full(*cuda, {}, hidden, DType::bf16)));
    expect_attention(q, k, v, false, where(of_queries, added, full(*cuda, {}, -1e30, DType::bf16)));
    expect_attention(q, k, v, false, random({4, t, s}));  // f32, which is not rounded
  }
}

TEST_F(CudaAttention, LongSequencesWithSharedHeads) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const std::int64_t d : {64, 128}) {
      const Gpu q = random({2, 6, 256, d}, dtype), k = random({2, 2, 256, d}, dtype),
                v = random({2, 2, 256, d}, dtype);
      expect_attention(q, k, v, false);
      expect_attention(q, k, v, true);
      expect_attention(q, k, v, true, random({256, 256}) > 0.2);
    }
  }
}

TEST_F(CudaAttention, Layouts) {
  const auto interleaved = [&](std::int64_t rows) { return transpose(random({2, rows, 3, 32}), 1, 2); };
  expect_attention(interleaved(70), interleaved(80), interleaved(80), true);
  for (const auto& [name, q] : layouts(*this, {1, 2, 66, 20}, DType::f32)) {
    for (const auto& [other, k] : layouts(*this, {1, 2, 67, 20}, DType::f32)) {
      SCOPED_TRACE(name + " and " + other);
      expect_attention(q, k, k, false);
    }
  }
}

TEST_F(CudaAttention, GradientsAreAddedToWhatIsThere) {
  const Gpu q = random({1, 2, 70, 8}), k = random({1, 2, 90, 8}), v = random({1, 2, 90, 8});
  const auto forward = eval_all(op::Attention{true, 1}, q, k, v);
  const Gpu grad = random(q.shape());
  const auto alone = eval_all(op::AttentionBackward{true, 1}, grad, q, k, v, forward[0], forward[1]);
  const std::vector<Gpu> sinks = {transpose(random({1, 2, 8, 70}), 2, 3), random(k.shape()),
                                  random(v.shape())};
  std::vector<Truth> sums;
  for (std::size_t i = 0; i < 3; ++i)
    sums.push_back(truth(alone[i]) + (i == 1 ? 0 : 1) * truth(sinks[i]));  // the second is overwritten
  run_into(*cuda, op::AttentionBackward{true, 1}, {grad, q, k, v, forward[0], forward[1]}, sinks, 5);
  for (std::size_t i = 0; i < 3; ++i) expect_near(sinks[i], sums[i], 1e-6);
}

TEST_F(CudaAttention, NoKeysGiveNothing) {
  const Gpu q = random({1, 2, 3, 4}), none = random({1, 2, 0, 4});
  const auto forward = eval_all(op::Attention{false, 1}, q, none, none);
  EXPECT_EQ(forward[0].to_vector<float>(), std::vector<float>(24, 0.0f));
  EXPECT_EQ(forward[1].to_vector<float>(), std::vector<float>(6, -std::numeric_limits<float>::infinity()));
}

TEST_F(CudaAttention, SharedHeadsAndWindows) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t d : {32, 128}) {
      const Gpu q = random({2, 6, 70, d}, dtype), k = random({2, 2, 190, d}, dtype),
                v = random({2, 2, 190, d}, dtype), keep = random({70, 190}) > 0.3;
      for (const std::int64_t window : {0, 1, 33, 1000}) {
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(std::string(to_string(dtype)) + " window " + std::to_string(window) +
                       (causal ? " causal" : ""));
          expect_attention(q, k, v, causal, {}, window);
          expect_attention(q, k, v, causal, keep, window);
        }
      }
    }
  }
}

TEST_F(CudaAttention, ShortSequencesShareABlock) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [t, s, d] : {std::array<std::int64_t, 3>{2, 2, 32},
                                  {7, 16, 64},
                                  {16, 5, 24},
                                  {30, 32, 32},
                                  {17, 40, 64},
                                  {10, 100, 64},
                                  {100, 10, 64}}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{t, s, d}));
      expect_attention(random({5, 3, t, d}, dtype), random({5, 3, s, d}, dtype), random({5, 3, s, d}, dtype),
                       false);
      expect_attention(random({5, 3, t, d}, dtype), random({5, 1, s, d}, dtype), random({5, 1, s, d}, dtype),
                       true, random({5, 1, t, s}) > 0);
    }
  }
}

TEST_F(CudaAttention, AWarpHasAWholeShortHead) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const auto& [t, s, d, e] : {std::array<std::int64_t, 4>{1, 1, 8, 8},
                                     {37, 37, 32, 32},
                                     {64, 64, 32, 24},
                                     {49, 33, 20, 32},
                                     {3, 64, 7, 32},
                                     {64, 1, 32, 31},
                                     {32, 32, 64, 64},
                                     {17, 30, 64, 40},
                                     {65, 64, 32, 32},  // and just too long
                                     {33, 32, 64, 64}}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{t, s, d, e}));
      expect_attention(random({3, 7, t, d}, dtype), random({3, 7, s, d}, dtype), random({3, 7, s, e}, dtype),
                       false);
    }
  }
}

TEST_F(CudaAttention, NarrowHeadsOfLongSequences) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const auto& [t, s, d] : {std::array<std::int64_t, 3>{129, 128, 32},
                                  {256, 384, 32},
                                  {300, 515, 24},
                                  {257, 300, 64},
                                  {70, 131, 64}}) {
      for (const std::int64_t window : {0, 100}) {
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{t, s, d}) +
                       (causal ? " causal" : "") + " window " + std::to_string(window));
          expect_attention(random({2, 3, t, d}, dtype), random({2, 3, s, d}, dtype),
                           random({2, 3, s, d}, dtype), causal, {}, window);
        }
      }
    }
  }
}

TEST_F(CudaAttention, ScalesOfAnySign) {
  for (const std::int64_t t : {20, 200}) {
    const Gpu q = random({2, 3, t, 32}, DType::bf16), k = random({2, 3, t, 32}, DType::bf16),
              v = random({2, 3, t, 32}, DType::bf16);
    for (const double scale : {-0.3, 0.0, 1e-3}) {
      SCOPED_TRACE(std::to_string(t) + " positions, scale " + std::to_string(scale));
      const op::Attention op{false, scale, 300};  // a window that hides nothing, but keeps cuDNN away
      const auto got = eval_all(op, q, k, v), again = eval_all(op::Attention{false, scale}, q, k, v);
      const auto want = eval_all(op, truth(q), truth(k), truth(v));
      const double tolerance = 2 * tolerance_of(DType::bf16, 32 + t);
      expect_near(got[0], want[0], tolerance);
      expect_near(got[1], want[1], tolerance_of(DType::f32, 32 + t));
      expect_near(again[0], want[0], tolerance);
    }
  }
}

TEST_F(CudaAttention, HeadsSideBySideAreReadAndWrittenInPlace) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [t, s] : {std::array<std::int64_t, 2>{5, 37}, {37, 37}, {130, 256}, {256, 516}}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{t, s}));
      const Gpu q = random({2, t, 6, 32}, dtype), k = random({2, s, 6, 32}, dtype),
                v = random({2, s, 6, 32}, dtype);
      const op::CrossAttention op{false, 0.2};
      const auto got = eval_all(op, q, k, v);
      const auto want = eval_all(op, truth(q), truth(k), truth(v));
      const double tolerance = 2 * tolerance_of(dtype, 32 + s);
      expect_near(got[0], want[0], tolerance);
      const Gpu grad = random(got[0].shape(), dtype);
      const op::CrossAttentionBackward backward{false, 0.2};
      const auto gradients = eval_all(backward, grad, q, k, v, got[0], got[1]);
      const auto truths =
          eval_all(backward, truth(grad), truth(q), truth(k), truth(v), truth(got[0]), truth(got[1]));
      for (std::size_t i = 0; i < 3; ++i) expect_near(gradients[i], truths[i], 2 * tolerance, 0.1);
      // Twice the gradient where it is added, to one of the three here.
      const auto begun = eval_all(backward, grad, q, k, v, got[0], got[1]);
      const std::vector<Gpu> sinks(begun.begin(), begun.end());
      run_into(*cuda, backward, {grad, q, k, v, got[0], got[1]}, sinks, 0b010);
      expect_near(sinks[0], truths[0], 2 * tolerance, 0.1);
      expect_near(sinks[1], 2 * truths[1], 4 * tolerance, 0.1);
      expect_near(sinks[2], truths[2], 2 * tolerance, 0.1);
    }
  }
}

TEST_F(CudaAttention, LargeNegativeMasksHideKeysAsInfinityDoes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Gpu q = random({1, 2, 70, 32}, dtype), k = random({1, 2, 150, 32}, dtype),
              v = random({1, 2, 150, 32}, dtype);
    for (const double mask : {-1e9, -1e10, -1e30}) {  // of the first tile of keys, and more
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(mask));
      const Gpu padding = where(arange(*cuda, 150) < 64, full(*cuda, {150}, mask), zeros(*cuda, {150}));
      expect_attention(q, k, v, false, padding);
    }
  }
}

TEST_F(CudaAttention, MoreEntriesThanAGridIsDeep) {
  const std::int64_t batch = 70'000;
  const Gpu q = random({batch, 1, 8, 16}, DType::bf16), k = random({batch, 1, 8, 16}, DType::bf16),
            v = random({batch, 1, 8, 16}, DType::bf16);
  const auto last = [&](const Gpu& x) { return slice(x, 0, batch - 3, batch); };
  const op::Attention op{false, 0.3};
  expect_near(last(eval(op, q, k, v)), eval(op, truth(last(q)), truth(last(k)), truth(last(v))),
              2 * tolerance_of(DType::bf16, 24));
}

TEST_F(CudaAttention, WideHeads) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const bool causal : {false, true}) {
      expect_attention(random({1, 2, 70, 256}, dtype), random({1, 1, 90, 256}, dtype),
                       random({1, 1, 90, 200}, dtype), causal);
      expect_attention(random({1, 2, 130, 161}, dtype), random({1, 2, 130, 161}, dtype),
                       random({1, 2, 130, 256}, dtype), causal, random({130, 130}, dtype));
    }
  }
}

TEST_F(CudaAttention, OtherProblemsAreComposed) {
  const Meta wide{{1, 1, 4, 160}, DType::f32}, doubles{{1, 1, 4, 8}, DType::f64};
  EXPECT_FALSE(accepts(*cuda, op::Attention{}, std::vector{wide, wide, wide}));
  EXPECT_FALSE(accepts(*cuda, op::Attention{}, std::vector{doubles, doubles, doubles}));
  const Gpu q = random({1, 2, 5, 160}), k = random({1, 2, 6, 160});
  expect_near(eval(op::Attention{true, 0.1}, q, k, k),
              eval(op::Attention{true, 0.1}, truth(q), truth(k), truth(k)),
              2 * tolerance_of(DType::f32, 166));
}

}  // namespace
}  // namespace ferrite::testing
