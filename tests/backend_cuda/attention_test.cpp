// Attention on the GPU: sizes around its tiles, masks of every kind, shared heads, windows, layouts, sinks.
#include "backend_cuda/attention_support.hpp"

namespace ferrite::testing {
namespace {

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
