#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

double logsumexp_of(const double* x, std::size_t n) {
  const double top = *std::max_element(x, x + n);
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) total += std::exp(x[i] - top);
  return top + std::log(total);
}

Lists losses(const Lists& in, std::size_t n, double ignore, double smoothing) {
  Values loss, lse;
  for (std::size_t r = 0; r < in[1].size(); ++r) {
    const double* x = in[0].data() + r * n;
    lse.push_back(logsumexp_of(x, n));
    double mean = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
    const double target = in[1][r];
    loss.push_back(target == ignore
                       ? 0
                       : lse[r] - (1 - smoothing) * x[static_cast<std::size_t>(target)] - smoothing * mean);
  }
  return {loss, lse};
}

/// From (dloss, logits, targets, lse).
Lists gradients(const Lists& in, std::size_t n, double ignore, double smoothing) {
  Values dx(in[1].size());
  for (std::size_t r = 0; r < in[2].size(); ++r) {
    if (in[2][r] == ignore) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const double q =
          smoothing / static_cast<double>(n) + (static_cast<double>(i) == in[2][r] ? 1 - smoothing : 0);
      dx[r * n + i] = in[0][r] * (std::exp(in[1][r * n + i] - in[3][r]) - q);
    }
  }
  return {dx};
}

const Shape softmax_cross_entropy_shapes[] = {{1, 1},    {3, 2},    {7, 5},    {4, 33},
                                              {5, 1000}, {2, 5000}, {400, 100}};

/// Classes in [0, n), every fifth one ignored.
Array targets_for(const Shape& shape, DType dtype, double ignore) {
  Values targets = values_of(uniform({shape[0]}, DType::i64, 9, 0, static_cast<double>(shape[1])));
  for (std::size_t i = 2; i < targets.size(); i += 5) targets[i] = ignore;
  return array_of({shape[0]}, dtype, targets);
}

TEST(CpuCrossEntropy, MatchesTheNaiveLoopsInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const Shape& shape : softmax_cross_entropy_shapes) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(to_string(Meta{shape, dtype}));
        const Array x = uniform(shape, dtype, 1, -6, 6), targets = targets_for(shape, DType::i64, -100);
        const auto n = at(shape[1]);
        check(op::SoftmaxCrossEntropy{-100, smoothing}, {x, targets},
              [&](const Lists& in) { return losses(in, n, -100, smoothing); }, {8, 8});
        const DType wide = wide_dtype(dtype);
        const Array dloss = uniform({shape[0]}, wide, 2),
                    lse = run_list(op::SoftmaxCrossEntropy{}, {x, targets})[1];
        check(op::SoftmaxCrossEntropyBackward{-100, smoothing}, {dloss, x, targets, lse},
              [&](const Lists& in) { return gradients(in, n, -100, smoothing); }, {8, 3});
      }
    }
  }
}

/// As if the columns of padding were not there. They are NaN: nobody may read them.
TEST(CpuCrossEntropy, PaddingIsNoPartOfIt) {
  for (const DType dtype : float_dtypes) {
    for (const auto& widths : {std::pair{8, 7}, {40, 33}, {64, 1}, {1024, 1000}}) {
      const int columns = widths.first, classes = widths.second;
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(classes));
        const Array inner = uniform({6, classes}, dtype, 1, -6, 6);
        const Array x = allocate({6, columns}, dtype);
        assign(x, Values(at(x.shape().numel()), std::nan("")));
        const Layout first = x.layout().slice(1, 0, classes, 1);
        assign(x.with_layout(first), values_of(inner));
        const Array targets = targets_for({6, classes}, DType::i64, -100);
        const Array scale = array_of({}, wide_dtype(dtype), {0.5});
        const auto want = run_list(op::SoftmaxCrossEntropy{-100, smoothing}, {inner, targets});
        const auto got = run_list(op::SoftmaxCrossEntropy{-100, smoothing, classes}, {x, targets});
        expect_same_bits(lists_of(got), lists_of(want), "loss");

        const auto expect_padded = [&](const Array& gradient, const Array& unpadded) {
          const Array shown = gradient.with_layout(first);
          const Array rest = gradient.with_layout(gradient.layout().slice(1, classes, columns - classes, 1));
          expect_same_bits(lists_of({shown}), lists_of({unpadded}), "gradient");
          EXPECT_EQ(values_of(rest), Values(at(rest.shape().numel()), 0.0));
        };
        const op::SoftmaxCrossEntropyWithGradient both{-100, smoothing, classes};
        expect_padded(
            run_list(both, {x, targets, scale})[1],
            run_list(op::SoftmaxCrossEntropyWithGradient{-100, smoothing}, {inner, targets, scale})[1]);
        const Array dloss = uniform({6}, wide_dtype(dtype), 2);
        expect_padded(
            run_list(op::SoftmaxCrossEntropyBackward{-100, smoothing, classes},
                     {dloss, x, targets, want[1]})[0],
            run_list(op::SoftmaxCrossEntropyBackward{-100, smoothing}, {dloss, inner, targets, want[1]})[0]);

        std::vector<Array> over{run_list(op::SoftmaxCrossEntropy{}, {inner, targets})[0], x};
        run_into(both, std::vector<Array>{x, targets, scale}, over);
        expect_padded(
            x, run_list(op::SoftmaxCrossEntropyWithGradient{-100, smoothing}, {inner, targets, scale})[1]);
      }
    }
  }
}

TEST(CpuCrossEntropy, TargetsMayBeAnyIntegers) {
  const Array x = uniform({6, 9}, DType::f32, 3);
  for (const DType dtype : {DType::i32, DType::u8}) {
    const Array targets = targets_for({6, 9}, dtype, 200);
    check(op::SoftmaxCrossEntropy{200, 0}, {x, targets},
          [&](const Lists& in) { return losses(in, 9, 200, 0); }, {8, 8});
  }
}

TEST(CpuCrossEntropy, AnIgnoredClassMayBeARealOne) {
  const Array x = uniform({4, 3}, DType::f32, 3), targets = array_of({4}, DType::i64, {0, 1, 2, 0});
  check(op::SoftmaxCrossEntropy{0, 0}, {x, targets}, [&](const Lists& in) { return losses(in, 3, 0, 0); },
        {8, 8});
}

TEST(CpuCrossEntropy, TargetsOutOfRangeAreNamed) {
  const Array x = uniform({5, 10}, DType::f32, 1), lse = uniform({5}, DType::f32, 1);
  const Array targets = array_of({5}, DType::i64, {1, -100, 2, 12, 99});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::SoftmaxCrossEntropy{}, {x, targets});
            }),
            "[softmax_cross_entropy] target 12 at position 3 is out of range for 10 classes (ignore_index is "
            "-100)");
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::SoftmaxCrossEntropy{-100, 0, 2}, {x, targets});
            }),
            "[softmax_cross_entropy] target 2 at position 2 is out of range for 2 classes (ignore_index is "
            "-100)");
  const Array negative = array_of({5}, DType::i32, {1, -1, 2, 3, 4});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::SoftmaxCrossEntropyBackward{}, {lse, x, negative, lse});
            }),
            "[softmax_cross_entropy_backward] target -1 at position 1 is out of range for 10 classes "
            "(ignore_index is -100)");
}

TEST(CpuCrossEntropy, ExtremeLogits) {
  const Array x = array_of(
      {5, 3}, DType::f32,
      {1e30, 0, 1e30, -infinity, 2, 2, -infinity, -infinity, -infinity, infinity, 0, 0, 0, NAN, infinity});
  const Array targets = array_of({5}, DType::i64, {0, 1, 0, 0, 0});
  const auto out = run_list(op::SoftmaxCrossEntropy{}, {x, targets});
  const Values lse = values_of(out[1]);
  EXPECT_FLOAT_EQ(static_cast<float>(lse[0]), 1e30f);
  EXPECT_NEAR(lse[1], 2 + std::log(2.0), 1e-6);
  EXPECT_EQ(lse[2], -infinity);
  EXPECT_EQ(lse[3], infinity);
  EXPECT_TRUE(std::isnan(lse[4]));
}

TEST(CpuCrossEntropy, SmoothingKeepsItsDigitsBesideLargeLogits) {
  Values logits;
  for (int i = 0; i < 10; ++i) logits.push_back(1e6 + 0.0625 * (i * 37 % 41));
  double sum = 0, mean = 0;
  for (const double x : logits) {
    sum += std::exp(x - 1e6);
    mean += (x - 1e6) / 10;
  }
  const double expected = std::log(sum) - 0.9 * (logits[0] - 1e6) - 0.1 * mean;
  op::SoftmaxCrossEntropy loss;
  loss.label_smoothing = 0.1;
  const Array x = array_of({1, 10}, DType::f32, logits), target = array_of({1}, DType::i64, {0});
  EXPECT_NEAR(values_of(run_list(loss, {x, target})[0])[0], expected, 1e-6);
}

TEST(CpuCrossEntropy, IgnoredRowsGetExactZerosEvenFromNan) {
  const Array x = array_of({1, 3}, DType::f32, {NAN, NAN, NAN}), targets = array_of({1}, DType::i64, {-100});
  const Array one = array_of({1}, DType::f32, {1}), lse = array_of({1}, DType::f32, {NAN});
  EXPECT_EQ(values_of(run_list(op::SoftmaxCrossEntropyBackward{}, {one, x, targets, lse})[0]),
            Values(3, 0.0));
  EXPECT_EQ(values_of(run_list(op::SoftmaxCrossEntropy{}, {x, targets})[0]), Values(1, 0.0));
}

}  // namespace
}  // namespace ferrite::testing
