#include "ferrite/ops/pointwise_loss.hpp"
#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

using op::LossFn;
constexpr LossFn all_losses[] = {LossFn::mse, LossFn::l1, LossFn::huber, LossFn::bce_with_logits};

double loss_of(LossFn fn, double x, double t, double delta) {
  const double d = std::abs(x - t);
  if (fn == LossFn::mse) return d * d;
  if (fn == LossFn::l1) return d;
  if (fn == LossFn::huber) return d <= delta ? d * d / 2 : delta * (d - delta / 2);
  return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
}

double slope_of(LossFn fn, double x, double t, double delta) {
  const double d = x - t;
  if (fn == LossFn::mse) return 2 * d;
  if (fn == LossFn::l1) return (d > 0) - (d < 0);
  if (fn == LossFn::huber) return std::clamp(d, -delta, delta);
  return 1 / (1 + std::exp(-x)) - t;
}

TEST(CpuLoss, MatchesTheFormulasInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const LossFn fn : all_losses) {
      for (const Shape& shape : {Shape{1}, Shape{3, 7}, Shape{2, 17, 1000}, Shape{0, 2}}) {
        SCOPED_TRACE(to_string(fn).data() + to_string(Meta{shape, dtype}));
        const bool probabilities = fn == LossFn::bce_with_logits;
        const Array x = uniform(shape, dtype, 1, -6, 6), d = uniform(shape, dtype, 3);
        const Array t = uniform(shape, dtype, 2, probabilities ? 0 : -3, probabilities ? 1 : 3);
        check(op::PointwiseLoss{fn, 1.5}, {x, t},
              [&](const Lists& in) {
                Values y;
                for (std::size_t i = 0; i < in[0].size(); ++i)
                  y.push_back(loss_of(fn, in[0][i], in[1][i], 1.5));
                return Lists{y};
              },
              {4, 4});
        check(op::PointwiseLossBackward{fn, 1.5}, {x, t, d},
              [&](const Lists& in) {
                Values y;
                for (std::size_t i = 0; i < in[0].size(); ++i)
                  y.push_back(in[2][i] * slope_of(fn, in[0][i], in[1][i], 1.5));
                return Lists{y};
              },
              {4, 4});
      }
    }
  }
}

TEST(CpuLoss, LargeLogitsDoNotOverflow) {
  const Array x = array_of({4}, DType::f32, {1e4, -1e4, 1e4, -1e4}),
              t = array_of({4}, DType::f32, {1, 0, 0, 1});
  EXPECT_EQ(values_of(run_list(op::PointwiseLoss{LossFn::bce_with_logits}, {x, t})[0]),
            (Values{0, 0, 1e4, 1e4}));
  const Array d = array_of({4}, DType::f32, {1, 1, 1, 1});
  EXPECT_EQ(values_of(run_list(op::PointwiseLossBackward{LossFn::bce_with_logits}, {x, t, d})[0]),
            (Values{0, 0, 1, -1}));
}

TEST(CpuLoss, MixedDtypesAreComputedInTheWiderOne) {
  const Array x = uniform({50}, DType::f32, 1), t = uniform({50}, DType::f64, 2);
  check(op::PointwiseLoss{LossFn::mse}, {x, t}, [&](const Lists& in) {
    Values y;
    for (std::size_t i = 0; i < in[0].size(); ++i) y.push_back(loss_of(LossFn::mse, in[0][i], in[1][i], 1));
    return Lists{y};
  });
}

}  // namespace
}  // namespace ferrite::testing
