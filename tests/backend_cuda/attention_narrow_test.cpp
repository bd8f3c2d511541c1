// Attention on the GPU of heads that are short, narrow or lie side by side, and what its gradients are given.
#include "backend_cuda/attention_support.hpp"

namespace ferrite::testing {
namespace {

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
  for (const std::int64_t t : {20, 200, 256}) {
    const Shape shape{2, 3, t, 32};
    const Gpu q = random(shape, DType::bf16), k = random(shape, DType::bf16), v = random(shape, DType::bf16),
              grad = random(shape, DType::bf16);
    const double tolerance = 2 * tolerance_of(DType::bf16, 32 + t);
    for (const double scale : {-0.3, 0.0, 1e-3}) {
      const auto want = eval_all(op::Attention{false, scale}, truth(q), truth(k), truth(v));
      for (const std::int64_t window : {0, 300}) {  // one that hides nothing, but keeps cuDNN away
        SCOPED_TRACE(std::to_string(t) + " positions, scale " + std::to_string(scale) + ", window " +
                     std::to_string(window));
        const auto got = eval_all(op::Attention{false, scale, window}, q, k, v);
        expect_near(got[0], want[0], tolerance);
        expect_near(got[1], want[1], tolerance_of(DType::f32, 32 + t));
        const auto gradients =
            eval_all(op::AttentionBackward{false, scale, window}, grad, q, k, v, got[0], got[1]);
        const auto truths = eval_all(op::AttentionBackward{false, scale}, truth(grad), truth(q), truth(k),
                                     truth(v), truth(got[0]), truth(got[1]));
        for (std::size_t i = 0; i < 3; ++i) expect_near(gradients[i], truths[i], 2 * tolerance, 0.1);
      }
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
      // Twice the gradient where it is added.
      for (const unsigned added : {0b010u, 0b101u}) {
        const auto begun = eval_all(backward, grad, q, k, v, got[0], got[1]);
        const std::vector<Gpu> sinks(begun.begin(), begun.end());
        run_into(*cuda, backward, {grad, q, k, v, got[0], got[1]}, sinks, added);
        for (std::size_t i = 0; i < 3; ++i) {
          const int times = added >> i & 1 ? 2 : 1;
          expect_near(sinks[i], times * truths[i], 2 * times * tolerance, 0.1);
        }
      }
    }
  }
}

// The keys may be one chunk of more: outputs and log-sum-exp are then those of all of them.
TEST_F(CudaAttention, GradientsTakeOutputsAndSumsAsGiven) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [t, s, d, e] : {std::array<std::int64_t, 4>{3, 3, 4, 4},
                                     {37, 37, 32, 32},
                                     {64, 20, 24, 20},
                                     {20, 30, 64, 40},
                                     {100, 130, 32, 32},
                                     {256, 256, 64, 64}}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{t, s, d, e}));
      const Gpu q = random({2, 3, t, d}, dtype), k = random({2, 3, s, d}, dtype),
                v = random({2, 3, s, e}, dtype), grad = random({2, 3, t, e}, dtype),
                o = random({2, 3, t, e}, dtype), lse = random({2, 3, t}) + 2;
      const op::AttentionBackward op{false, 0.3};
      const auto got = eval_all(op, grad, q, k, v, o, lse);
      const auto want = eval_all(op, truth(grad), truth(q), truth(k), truth(v), truth(o), truth(lse));
      for (std::size_t i = 0; i < 3; ++i) {
        SCOPED_TRACE("gradient " + std::to_string(i));
        expect_near(got[i], want[i], 4 * tolerance_of(dtype, d + s), 0.1);
      }
    }
  }
}

TEST_F(CudaAttention, QueriesWhoseScoresAreAllMinusInfinitySeeNothing) {
  for (const auto& [t, window] : {std::array<std::int64_t, 2>{4, 0}, {256, 600}}) {
    SCOPED_TRACE(t);
    const Shape shape{1, 2, t, 8};  // products of -8e40, which f32 does not have
    const Gpu q = full(*cuda, shape, 1e20, DType::bf16), k = full(*cuda, shape, -1e20, DType::bf16),
              v = random(shape, DType::bf16), grad = random(shape, DType::bf16);
    const auto forward = eval_all(op::Attention{false, 0.5, window}, q, k, v);
    const auto count = static_cast<std::size_t>(2 * t);
    EXPECT_EQ(forward[0].to_vector<float>(), std::vector<float>(8 * count, 0.0f));
    EXPECT_EQ(forward[1].to_vector<float>(),
              std::vector<float>(count, -std::numeric_limits<float>::infinity()));
    for (const Gpu& gradient :
         eval_all(op::AttentionBackward{false, 0.5, window}, grad, q, k, v, forward[0], forward[1]))
      EXPECT_EQ(gradient.to_vector<float>(), std::vector<float>(8 * count, 0.0f));
  }
}

TEST_F(CudaAttention, LargeGradientsOfF16DoNotOverflow) {
  const Shape shape{1, 1, 2, 64};
  const Gpu zero = zeros(*cuda, shape, DType::f16);
  const Gpu v =
      expand(to(*cuda, cast(from_vector(host, std::vector<float>{2, -2}, {1, 1, 2, 1}), DType::f16)), shape);
  const Gpu lse = full(*cuda, {1, 1, 2}, std::log(2.0)), mask = zeros(*cuda, {2, 2}, DType::f16);
  // Gradients of scores: 0.5 * 2 * 64 times these, before or after the scale beyond what f16 has.
  for (const auto& [scale, size] : {std::pair{0.125, 1200.0}, {16.0, 200.0}, {-16.0, 200.0}}) {
    SCOPED_TRACE(scale);
    const Gpu grad = full(*cuda, shape, size, DType::f16);
    const op::AttentionBackward op{false, scale};
    for (const auto& got :
         {eval_all(op, grad, zero, zero, v, zero, lse), eval_all(op, grad, zero, zero, v, zero, lse, mask)}) {
      EXPECT_EQ(got[0].to_vector<float>(), std::vector<float>(128, 0.0f));
      EXPECT_EQ(got[1].to_vector<float>(), std::vector<float>(128, 0.0f));
      EXPECT_EQ(got[2].to_vector<float>(), std::vector<float>(128, static_cast<float>(size)));
    }
  }
}

}  // namespace
}  // namespace ferrite::testing
