// linear_cross_entropy: its kernel against its composition in f64, gradients with and without a root of 1,
// and what becomes of them in mixed precision.
#include "ferrite/ops/linear_cross_entropy.hpp"

#include "ferrite/stacks.hpp"
#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

Lists composed(const op::LinearCrossEntropy& op, const Lists& in, std::int64_t rows, std::int64_t columns) {
  Reference b;
  const std::int64_t length = static_cast<std::int64_t>(in[0].size()) / std::max<std::int64_t>(rows, 1);
  const auto out =
      eval_all(op, from_vector(b, in[0], {rows, length}), from_vector(b, in[1], {columns, length}),
               cast(from_vector(b, in[2]), DType::i64));
  Lists lists;
  for (const auto& tensor : out) lists.push_back(tensor.to_vector<double>());
  return lists;
}

TEST(CpuLinearCrossEntropy, MatchesItsCompositionForAnyChunks) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const std::int64_t chunk : {0, 1, 4, 9, 100}) {
      for (const std::int64_t classes : {0, 20}) {
        for (const bool with_gradient : {false, true}) {
          SCOPED_TRACE(std::string(to_string(dtype)) + ", chunks of " + std::to_string(chunk));
          const op::LinearCrossEntropy op{3, 0.1, chunk != 4, classes, chunk, with_gradient};
          const Array x = uniform({9, 12}, dtype, 1, -1, 1), weight = uniform({23, 12}, dtype, 2, -1, 1);
          const Array targets = uniform({9}, DType::i32, 3, 0, 20);
          check(op, {x, weight, targets}, [&](const Lists& in) { return composed(op, in, 9, 23); }, {16, 1});
        }
      }
    }
  }
}

TEST(CpuLinearCrossEntropy, OfNoRowsHasAGradientOfZeros) {
  const Array x = uniform({0, 3}, DType::f32, 1), weight = uniform({4, 3}, DType::f32, 2);
  const Array targets = uniform({0}, DType::i64, 3);
  op::LinearCrossEntropy op{.mean = false, .with_gradient = true};
  const auto out = run_list(op, {x, weight, targets});
  EXPECT_EQ(values_of(out[0]), Values{0});
  EXPECT_EQ(values_of(out[2]), Values(12, 0.0));
}

TEST(CpuLinearCrossEntropy, NamesATargetByItsPositionInAllRows) {
  const Array x = uniform({5, 3}, DType::f32, 1), weight = uniform({4, 3}, DType::f32, 2);
  const Array targets = array_of({5}, DType::i64, {1, -100, 2, 3, 4});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::LinearCrossEntropy{.chunk_rows = 2}, {x, weight, targets});
            }),
            "[linear_cross_entropy] target 4 at position 4 is out of range for 4 classes (ignore_index is "
            "-100)");
}

TEST(CpuLinearCrossEntropy, ChunksAreOfOneSizeWithinTheBytes) {
  const op::LinearCrossEntropy op;
  EXPECT_EQ(op.rows_at_once(65536, 2 * 50304, std::int64_t{4} << 30), 32768);
  EXPECT_EQ(op.rows_at_once(100, 10, 330), 25);
  EXPECT_EQ(op.rows_at_once(100, 1000, 330), 1);
  EXPECT_EQ(op.rows_at_once(0, 0, 330), 1);
  EXPECT_EQ(op::LinearCrossEntropy{.chunk_rows = 30}.rows_at_once(100, 10, 330), 30);
}

/// By both functions, of f(loss).
template <class B, class F>
void expect_gradients_of_the_parts(B b, DType dtype, F&& f, double tolerance) {
  Rng rng(3);
  const auto x = parameter(randn(b, {6, 5}, rng, 0, 1, dtype), "x");
  const auto weight = parameter(randn(b, {8, 5}, rng, 0, 1, dtype), "weight");
  const auto targets = from_vector(b, std::vector<std::int64_t>{4, 0, -100, 2, 1, 6});
  const auto config = CrossEntropyConfig{}.with_classes(7);
  const auto want = f(softmax_cross_entropy(linear(x, weight), targets, config)).backward();
  const auto got = f(linear_cross_entropy(x, weight, targets, config)).backward();
  for (const auto& leaf : {x, weight}) {
    EXPECT_EQ(got.of(leaf).dtype(), dtype);
    const Values a = got.of(leaf).template to_vector<double>(),
                 c = want.of(leaf).template to_vector<double>();
    ASSERT_EQ(a.size(), c.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], c[i], tolerance) << i;
  }
}

TEST(LinearCrossEntropyGradient, IsThatOfItsParts) {
  const auto bare = [](const auto& loss) { return loss; };
  const auto scaled = [](const auto& loss) { return loss * 3; };
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::f32, 1e-6}, {DType::f64, 1e-14}, {DType::bf16, 2e-2}, {DType::f16, 2e-3}}) {
    expect_gradients_of_the_parts(Autodiff<Cpu>(), dtype, bare, tolerance);
    expect_gradients_of_the_parts(Autodiff<Cpu>(), dtype, scaled, 3 * tolerance);
    expect_gradients_of_the_parts(Autodiff<Lazy<Cpu>>(), dtype, scaled, 3 * tolerance);
    expect_gradients_of_the_parts(Autodiff<Parity<Cpu, Reference>>(), dtype, bare, tolerance);
  }
  expect_gradients_of_the_parts(Autodiff<Autocast<Cpu>>(), DType::f32, bare, 2e-2);
  expect_gradients_of_the_parts(Autodiff<Autocast<Reference>>(), DType::f32, bare, 2e-2);
}

TEST(LinearCrossEntropyGradient, AddsToWhatElseATiedWeightGets) {
  Autodiff<Cpu> b;
  Rng rng(3);
  const auto table = parameter(randn(b, {7, 5}, rng), "table");
  const auto ids = from_vector(b, std::vector<std::int64_t>{1, 3, 1, 6});
  const auto want = softmax_cross_entropy(linear(embedding(table, ids), table), ids).backward().of(table);
  const auto got = linear_cross_entropy(embedding(table, ids), table, ids).backward().of(table);
  const Values a = got.to_vector<double>(), c = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], c[i], 1e-6) << i;
}

/// 1 / 4096 of a probability of 2e-5 is less than f16 can hold, but not after scaling.
TEST(LinearCrossEntropyGradient, OfF16SurvivesByALossScale) {
  const std::int64_t rows = 4096, classes = 8;
  const auto check = [&](auto b, DType dtype) {
    const auto certain = one_hot(zeros(b, {rows}, DType::i64), classes, DType::f32) * 11;
    const auto x = parameter(cast(certain, dtype), "x");
    const auto weight = cast(one_hot(arange(b, classes), classes, DType::f32), dtype);
    const auto loss = linear_cross_entropy(x, weight, zeros(b, {rows}, DType::i64)) * 65536;
    const Values gradient = loss.backward().of(x).template to_vector<double>();
    EXPECT_NEAR(gradient[1], 16 * std::exp(-11.0), 16 * std::exp(-11.0) * 1e-2);
  };
  check(Autodiff<Cpu>(), DType::f16);
  check(Autodiff<Reference>(), DType::f16);
  check(Autodiff<Autocast<Cpu>>(AutocastConfig{}.with_dtype(DType::f16)), DType::f32);
}

TEST(LinearCrossEntropyGradient, OfTheWeightIsNotRoundedTo16BitsByAutocast) {
  Autodiff<Autocast<Cpu>> b;
  // Two rows that want different classes, with x of 1 and 2^-8: the gradient is a sum of both parts.
  const auto x = from_vector(b, std::vector<float>{1, 0.00390625f}, {2, 1});
  const auto weight = parameter(zeros(b, {2, 1}), "weight");
  const auto targets = from_vector(b, std::vector<std::int64_t>{0, 0});
  const auto config = CrossEntropyConfig{}.with_reduction(Reduction::sum);
  const auto gradient = linear_cross_entropy(x, weight, targets, config).backward().of(weight);
  EXPECT_EQ(gradient.dtype(), DType::f32);
  EXPECT_EQ(gradient.to_vector<float>(), (std::vector<float>{-0.501953125f, 0.501953125f}));
}

}  // namespace
}  // namespace ferrite::testing
