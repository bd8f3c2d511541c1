// softmax, norms and cross entropy on the GPU: rows of every length that is taken in a way of its own (part
// of a warp, a warp, a block, clusters of 2, 4 and 8, too long for registers), aligned or not.
#include "backend_cuda/contraction_support.hpp"
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/rms_norm.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite::testing {
namespace {

/// Rows are computed in f32 (f64 for f64) and rounded once.
double tolerance_of_rows(DType dtype, std::int64_t length) {
  return 2 * epsilon(dtype) + tolerance_of(dtype == DType::f64 ? DType::f64 : DType::f32, length);
}

struct CudaRows : CudaContraction {
  /// got[i] against want[i], in the tolerance of sums of `length` terms.
  void expect_all_near(const Tensors<Cuda>& got, const Tensors<Reference>& want, std::int64_t length,
                       double terms = 0) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      expect_near(got[i], want[i], tolerance_of_rows(got[i].dtype(), length), terms);
    }
  }
  /// Runs `op` into outputs that hold something already, adding to all of them.
  template <class Op>
  void expect_adds(const Op& op, std::initializer_list<Gpu> in, const Tensors<Reference>& results,
                   std::int64_t length) {
    std::vector<Gpu> old;
    std::vector<Truth> sums;
    for (const Truth& result : results) {
      old.push_back(random(result.shape(), in.begin()->dtype()));
      sums.push_back(truth(old.back()) + result);
    }
    run_into(*cuda, op, in, old, ~0u);
    for (std::size_t i = 0; i < old.size(); ++i)
      expect_near(old[i], sums[i], 2 * tolerance_of_rows(old[i].dtype(), length));
  }
};

std::string name_of(const Gpu& x) { return to_string(x.meta()); }

const Shape shapes[] = {{3, 1},      {70, 3},    {3, 8},     {1000, 10}, {5, 64},    {9, 100},
                        {5001, 192}, {300, 256}, {600, 768}, {7, 1000},  {5, 4096},  {3, 8192},
                        {2, 12345},  {3, 16392}, {3, 50304}, {2, 70000}, {2, 140008}};

TEST_F(CudaRows, Softmax) {
  for (const DType dtype : floats) {
    for (const Shape& shape : shapes) {
      const Gpu x = random(shape, dtype) * 4, dy = random(shape, dtype);
      SCOPED_TRACE(name_of(x));
      const auto check = [&](const auto& forward, const auto& backward) {
        const Gpu y = eval(forward, x);
        expect_near(y, eval(forward, truth(x)), tolerance_of_rows(dtype, shape[1]));
        const Truth dx = eval(backward, truth(y), truth(dy));
        expect_near(eval(backward, y, dy), dx, tolerance_of_rows(dtype, shape[1]));
        expect_adds(backward, {y, dy}, {dx}, shape[1]);
      };
      check(op::Softmax{}, op::SoftmaxBackward{});
      check(op::LogSoftmax{}, op::LogSoftmaxBackward{});
    }
  }
}

TEST_F(CudaRows, SoftmaxOfEveryLayoutAlongEveryAxis) {
  for (const auto& [name, x] : layouts(*this, {3, 40, 24}, DType::f32)) {
    for (int axis = 0; axis < 3; ++axis) {
      SCOPED_TRACE(name + ", axis " + std::to_string(axis));
      const Truth want = eval(op::Softmax{axis}, truth(x));
      for (const auto& [_, y] : layouts(*this, {3, 40, 24}, DType::f32)) {
        if (y.primitive().layout().may_overlap()) continue;
        run_into(*cuda, op::Softmax{axis}, {x}, {y});
        expect_near(y, want, tolerance_of_rows(DType::f32, 40));
      }
    }
  }
}

TEST_F(CudaRows, SoftmaxOfInfinitiesAndNaN) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t length : {4, 1000, 50304}) {
    std::vector<double> values;
    for (const double special : {-inf, inf, nan, 3e4}) {  // the first element, among zeros
      values.push_back(special);
      values.resize(values.size() + static_cast<std::size_t>(length - 1), 0);
    }
    values.resize(values.size() + static_cast<std::size_t>(length), -inf);  // and a row of nothing
    for (const DType dtype : floats) {
      const Gpu x = to(*cuda, cast(from_vector(host, values, {5, length}), dtype));
      SCOPED_TRACE(name_of(x));
      expect_near(softmax(x), softmax(truth(x)), tolerance_of_rows(dtype, length));
      expect_near(log_softmax(x), log_softmax(truth(x)), tolerance_of_rows(dtype, length));
      const Gpu targets = zeros(*cuda, {5}, DType::i64);
      expect_all_near(eval_all(op::SoftmaxCrossEntropy{}, x, targets),
                      eval_all(op::SoftmaxCrossEntropy{}, truth(x), truth(targets)), length);
    }
  }
}

TEST_F(CudaRows, LayerNormAndRmsNorm) {
  for (const DType dtype : floats) {
    for (const Shape& shape : shapes) {
      // Far from zero, so that a variance by the difference of two sums would show; parameters of both kinds.
      const Gpu x = random(shape, dtype) + 8, dy = random(shape, dtype);
      const std::int64_t terms = std::max(shape[0], shape[1]) * 64;  // the inputs are 8 times as large
      SCOPED_TRACE(name_of(x));
      for (const DType parameters : {dtype, dtype == DType::f64 ? DType::f64 : DType::f32}) {
        const Gpu weight = random({shape[1]}, parameters), bias = random({shape[1]}, parameters);
        const auto y = eval_all(op::LayerNorm{}, x, weight, bias);
        expect_all_near(y, eval_all(op::LayerNorm{}, truth(x), truth(weight), truth(bias)), terms);
        const auto z = eval_all(op::RmsNorm{}, x, weight);
        expect_all_near(z, eval_all(op::RmsNorm{}, truth(x), truth(weight)), terms);

        const auto want =
            eval_all(op::LayerNormBackward{}, truth(dy), truth(x), truth(weight), truth(y[1]), truth(y[2]));
        const op::LayerNormBackward layer;
        // Of rows of one element all is subtracted, what 1 / sqrt(eps) had enlarged.
        expect_all_near(eval_all(layer, dy, x, weight, y[1], y[2]), want, terms, shape[1] == 1 ? 316 : 0);
        const auto want_rms =
            eval_all(op::RmsNormBackward{}, truth(dy), truth(x), truth(weight), truth(z[1]));
        expect_all_near(eval_all(op::RmsNormBackward{}, dy, x, weight, z[1]), want_rms, terms,
                        shape[1] == 1 ? 1 : 0);
        if (parameters != dtype) continue;
        expect_adds(layer, {dy, x, weight, y[1], y[2]}, want, terms);
        expect_adds(op::RmsNormBackward{}, {dy, x, weight, z[1]}, want_rms, terms);
      }
    }
  }
}

TEST_F(CudaRows, NormsOfEveryLayout) {
  const Gpu weight = slice(random({50}), 0, 1, 50, 2), bias = flip(random({25}), {0});
  for (const auto& [name, x] : layouts(*this, {9, 25}, DType::f32)) {
    SCOPED_TRACE(name);
    const auto want = eval_all(op::LayerNorm{}, truth(x), truth(weight), truth(bias));
    const Gpu y = transpose(random({25, 9}), 0, 1), mean = flip(random({9}), {0}), rstd = random({9});
    run_into(*cuda, op::LayerNorm{}, {x, weight, bias}, {y, mean, rstd});
    expect_near(y, want[0], tolerance_of_rows(DType::f32, 25));
    expect_near(mean, want[1], tolerance_of_rows(DType::f32, 25));
    expect_near(rstd, want[2], tolerance_of_rows(DType::f32, 25));
    const auto slopes =
        eval_all(op::LayerNormBackward{}, truth(y), truth(x), truth(weight), truth(mean), truth(rstd));
    const Gpu dx = transpose(random({25, 9}), 0, 1), dweight = flip(random({25}), {0}), dbias = random({25});
    const Truth dweight_sum = truth(dweight) + slopes[1];
    run_into(*cuda, op::LayerNormBackward{}, {y, x, weight, mean, rstd}, {dx, dweight, dbias}, 2);
    expect_near(dx, slopes[0], tolerance_of_rows(DType::f32, 25));
    expect_near(dweight, dweight_sum, tolerance_of_rows(DType::f32, 25));
    expect_near(dbias, slopes[2], tolerance_of_rows(DType::f32, 25));
  }
}

/// Those of at most a pack for each lane of a warp.
TEST_F(CudaRows, GradientsOfNormsOfManyShortRowsOfEveryLayout) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto check = [&](const Gpu& dy, const Gpu& x) {
      const std::int64_t rows = x.size(0), terms = rows * 16;
      const Gpu weight = random({x.size(1)}, dtype), rstd = random({rows}) + 2, mean = random({rows});
      expect_all_near(eval_all(op::RmsNormBackward{}, dy, x, weight, rstd),
                      eval_all(op::RmsNormBackward{}, truth(dy), truth(x), truth(weight), truth(rstd)),
                      terms);
      expect_all_near(
          eval_all(op::LayerNormBackward{}, dy, x, weight, mean, rstd),
          eval_all(op::LayerNormBackward{}, truth(dy), truth(x), truth(weight), truth(mean), truth(rstd)),
          terms);
    };
    check(random({20'001, 64}, dtype), random({20'001, 64}, dtype));  // more than all blocks at once
    const Gpu wide = random({9, 128}, dtype);
    check(slice(wide, 1, 0, 64), slice(wide, 1, 64, 128));
    check(slice(wide, 1, 1, 65), slice(wide, 1, 61, 125));  // packs of 16 bytes begin elsewhere
    check(expand(random({1, 64}, dtype), {9, 64}), slice(random({18, 64}, dtype), 0, 0, 18, 2));
  }
}

TEST_F(CudaRows, NormsOfNothing) {
  const Gpu weight = random({16}), none = random({0, 16}), statistics = random({0});
  EXPECT_EQ(layer_norm(none, weight, weight).shape(), (Shape{0, 16}));
  const auto slopes = eval_all(op::LayerNormBackward{}, none, none, weight, statistics, statistics);
  EXPECT_EQ(slopes[1].to_vector<float>(), std::vector<float>(16, 0.0f));
  EXPECT_EQ(slopes[2].to_vector<float>(), std::vector<float>(16, 0.0f));
  const auto of_short =
      eval_all(op::RmsNormBackward{}, random({0, 64}), random({0, 64}), random({64}), statistics);
  EXPECT_EQ(of_short[1].to_vector<float>(), std::vector<float>(64, 0.0f));
  EXPECT_EQ(softmax(none).shape(), none.shape());
}

TEST_F(CudaRows, SameBitsOnEveryRun) {
  for (const std::int64_t length : {64, 776}) {
    const Gpu x = random({5000, length}), dy = random({5000, length}), weight = random({length});
    const auto y = eval_all(op::RmsNorm{}, x, weight);
    const auto first = eval_all(op::RmsNormBackward{}, dy, x, weight, y[1]);
    for (int i = 0; i < 5; ++i) {
      const auto again = eval_all(op::RmsNormBackward{}, dy, x, weight, y[1]);
      for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(again[k].to_vector<float>(), first[k].to_vector<float>());
    }
  }
}

TEST_F(CudaRows, CrossEntropy) {
  for (const DType dtype : floats) {
    for (const Shape& shape : shapes) {
      const std::int64_t n = shape[0], classes = shape[1];
      const Gpu x = random(shape, dtype) * 4;
      SCOPED_TRACE(name_of(x));
      const Gpu targets = to(*cuda, cast(randint(host, {n}, rng, 0, std::min<std::int64_t>(classes, 256)),
                                         n == 3   ? DType::u8
                                         : n == 2 ? DType::i32
                                                  : DType::i64));
      for (const double smoothing : {0.0, 0.25}) {
        const op::SoftmaxCrossEntropy loss{0, smoothing};  // class 0 is ignored: some of the rows are
        const op::SoftmaxCrossEntropyBackward slope{0, smoothing};
        const auto y = eval_all(loss, x, targets);
        expect_all_near(y, eval_all(loss, truth(x), truth(targets)), classes);
        // One gradient for all rows, as a sum over them has it.
        const Gpu dloss = expand(random({1}, y[0].dtype()), {n});
        const Truth want = eval(slope, truth(dloss), truth(x), truth(targets), truth(y[1]));
        expect_near(eval(slope, dloss, x, targets, y[1]), want, tolerance_of_rows(dtype, classes));
        const Gpu in_place = x + 0;
        run_into(*cuda, slope, {dloss, in_place, targets, y[1]}, {in_place});
        expect_near(in_place, want, tolerance_of_rows(dtype, classes));
        const Gpu old = random(shape, dtype);
        const Truth sum = truth(old) + want;
        run_into(*cuda, slope, {dloss, x, targets, y[1]}, {old}, 1);
        expect_near(old, sum, 2 * tolerance_of_rows(dtype, classes));

        const op::SoftmaxCrossEntropyWithGradient both{0, smoothing};
        const Gpu scale = random({}, y[0].dtype());
        const auto want_both = eval_all(both, truth(x), truth(targets), truth(scale));
        expect_all_near(eval_all(both, x, targets, scale), want_both, classes);
        const Gpu over_logits = x + 0, losses = random({n}, y[0].dtype());
        run_into(*cuda, both, {over_logits, targets, scale}, {losses, over_logits});
        expect_near(over_logits, want_both[1], tolerance_of_rows(dtype, classes));
      }
    }
  }
}

TEST_F(CudaRows, SmoothedCrossEntropyOfLargeLogits) {
  for (const std::int64_t classes : {5, 768, 50304}) {
    const Gpu x = random({3, classes}) + 1e6;
    const Gpu targets = to(*cuda, randint(host, {3}, rng, 0, classes)), scale = full(*cuda, {}, 1);
    const op::SoftmaxCrossEntropy loss{-1, 0.25};
    const op::SoftmaxCrossEntropyWithGradient both{-1, 0.25};
    expect_near(eval_all(loss, x, targets)[0], eval_all(loss, truth(x), truth(targets))[0], 1e-5);
    expect_near(eval_all(both, x, targets, scale)[0],
                eval_all(both, truth(x), truth(targets), truth(scale))[0], 1e-5);
  }
}

TEST_F(CudaRows, CrossEntropyWithPadding) {
  const std::pair<Shape, std::int64_t> cases[] = {{{70, 3}, 2},      {{9, 104}, 97},      {{600, 768}, 768},
                                                  {{3, 8192}, 8185}, {{3, 50304}, 50257}, {{2, 70000}, 11}};
  for (const DType dtype : floats) {
    for (const auto& [shape, classes] : cases) {
      const std::int64_t n = shape[0];
      // Padding is NaN: nobody may use it.
      const Gpu used = random({n, classes}, dtype) * 4;
      const Gpu x = pad(used, {0, 0}, {0, shape[1] - classes}, std::numeric_limits<double>::quiet_NaN());
      SCOPED_TRACE(name_of(x) + " with " + std::to_string(classes) + " classes");
      const Gpu targets = to(*cuda, randint(host, {n}, rng, 0, classes));
      const op::SoftmaxCrossEntropy loss{0, 0.25, classes};
      const op::SoftmaxCrossEntropyWithGradient both{0, 0.25, classes};
      const auto y = eval_all(loss, x, targets);
      expect_all_near(y, eval_all(loss, truth(x), truth(targets)), classes);
      const Gpu scale = random({}, y[0].dtype()), dloss = expand(scale, {n});
      const auto want = eval_all(both, truth(x), truth(targets), truth(scale));
      expect_all_near(eval_all(both, x, targets, scale), want, classes);
      expect_near(eval(op::SoftmaxCrossEntropyBackward{0, 0.25, classes}, dloss, x, targets, y[1]), want[1],
                  tolerance_of_rows(dtype, classes));
      const Gpu losses = random({n}, y[0].dtype());
      run_into(*cuda, both, {x, targets, scale}, {losses, x});
      expect_near(x, want[1], tolerance_of_rows(dtype, classes));
    }
  }
}

TEST_F(CudaRows, CrossEntropyNearCertainty) {
  std::vector<float> logits(1000, 0.0f);
  logits[7] = 30;
  const Gpu x = to(*cuda, from_vector(host, logits, {1, 1000})),
            target = to(*cuda, from_vector(host, std::vector<std::int64_t>{7}, {1}));
  const double got = eval_all(op::SoftmaxCrossEntropy{}, x, target)[0].to_vector<double>()[0];
  EXPECT_NEAR(got, std::log1p(999 * std::exp(-30.0)), 1.2e-7);
}

TEST_F(CudaRows, CrossEntropyOfAWrongTarget) {
  const Gpu x = random({4, 10});
  for (const std::int64_t wrong : {10, -1}) {
    const Gpu targets = to(*cuda, from_vector(host, std::vector<std::int64_t>{1, wrong, -100, 9}, {4}));
    eval_all(op::SoftmaxCrossEntropy{}, x, targets);
    EXPECT_THROW(cuda->synchronize(), ValueError);
  }
  cuda->synchronize();
  expect_near(softmax(x), softmax(truth(x)), tolerance_of_rows(DType::f32, 10));
}

TEST_F(CudaRows, BatchNorm) {
  const Shape cases[] = {{6, 3},      {64, 130},      {4, 3, 2, 2},   {3, 5, 33},
                         {2, 70, 64}, {9, 3, 40, 41}, {32, 4, 64, 64}};
  for (const DType dtype : floats) {
    for (const Shape& shape : cases) {
      const Gpu x = random(shape, dtype) + 8, dy = random(shape, dtype);
      SCOPED_TRACE(name_of(x));
      const std::int64_t terms = shape.numel() / shape[1] * 64;  // the inputs are 8 times as large
      const Gpu weight = random({shape[1]}, dtype), bias = random({shape[1]}, DType::f32);
      const auto y = eval_all(op::BatchNorm{}, x, weight, bias);
      expect_all_near(y, eval_all(op::BatchNorm{}, truth(x), truth(weight), truth(bias)), terms);
      const op::BatchNormBackward slope;
      const auto want = eval_all(slope, truth(dy), truth(x), truth(weight), truth(y[1]), truth(y[2]));
      expect_all_near(eval_all(slope, dy, x, weight, y[1], y[2]), want, terms);
      expect_adds(slope, {dy, x, weight, y[1], y[2]}, want, terms);
    }
  }
  for (const auto& [name, x] : layouts(*this, {3, 5, 6, 20}, DType::f32)) {
    SCOPED_TRACE(name);
    const Gpu weight = random({5}), y = transpose(random({3, 5, 20, 6}), -1, -2), mean = random({5}),
              rstd = flip(random({5}), {0});
    const auto want = eval_all(op::BatchNorm{}, truth(x), truth(weight), truth(weight));
    run_into(*cuda, op::BatchNorm{}, {x, weight, weight}, {y, mean, rstd});
    expect_near(y, want[0], tolerance_of_rows(DType::f32, 360));
    expect_near(mean, want[1], tolerance_of_rows(DType::f32, 360));
    expect_near(rstd, want[2], tolerance_of_rows(DType::f32, 360));
  }
}

}  // namespace
}  // namespace ferrite::testing
