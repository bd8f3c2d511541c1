// conv2d and its gradients on the GPU, at sizes where cuDNN's engines are timed in both layouts.
#include "ferrite/ops/conv2d.hpp"
#include "backend_cuda/contraction_support.hpp"

namespace ferrite::testing {
namespace {

struct CudaConv2d : CudaContraction {
  /// Forward, both gradients, and both gradients added to what is there.
  void expect_convolution(const Gpu& x, const Gpu& w, const op::ConvGeometry& g, double factor = 1) {
    const DType dtype = x.dtype();
    const Truth tx = truth(x), tw = truth(w), ty = eval(op::Conv2d{g}, tx, tw);
    const auto tolerance = [&](std::int64_t length) { return 2 * factor * tolerance_of(dtype, length); };
    expect_near(eval(op::Conv2d{g}, x, w), ty, tolerance(tw.numel() / tw.size(0)));
    const Gpu dy = random(ty.shape(), dtype);
    const Truth dx = eval(op::Conv2dInputGrad{g, x.shape()}, truth(dy), tw);
    const Truth dw = eval(op::Conv2dWeightGrad{g, w.shape()}, truth(dy), tx);
    const std::int64_t input_length = tw.numel() / tw.size(1), weight_length = ty.numel() / ty.size(1);
    const op::Conv2dInputGrad input{g, x.shape()};
    const op::Conv2dWeightGrad weight{g, w.shape()};
    expect_near(eval(input, dy, w), dx, tolerance(input_length));
    expect_near(eval(weight, dy, x), dw, tolerance(weight_length));
    const Gpu old_x = random(x.shape(), dtype), old_w = random(w.shape(), dtype);
    const Truth sum_x = dx + truth(old_x), sum_w = dw + truth(old_w);
    run_into(*cuda, input, {dy, w}, {old_x}, 1);
    run_into(*cuda, weight, {dy, x}, {old_w}, 1);
    expect_near(old_x, sum_x, 2 * tolerance(input_length));
    expect_near(old_w, sum_w, 2 * tolerance(weight_length));
  }
};

TEST_F(CudaConv2d, GeometriesOfEveryDtype) {
  for (const DType dtype : floats) {
    const auto check = [&](const Shape& x, const Shape& w, const Conv2dConfig& config) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " x " + to_string(x) + " w " + to_string(w));
      expect_convolution(random(x, dtype), random(w, dtype), config.geometry);
    };
    check({2, 3, 9, 7}, {5, 3, 3, 3}, Conv2dConfig{}.with_padding(1));
    check({2, 4, 10, 9}, {6, 2, 3, 2}, Conv2dConfig{}.with_groups(2).with_stride(2, 1).with_padding(2, 1));
    check({3, 6, 8, 8}, {6, 1, 3, 3}, Conv2dConfig{}.with_groups(6).with_padding(1));
    check({1, 2, 12, 12}, {3, 2, 3, 3}, Conv2dConfig{}.with_dilation(3).with_padding(4));
    check({1, 1, 1, 1}, {1, 1, 1, 1}, Conv2dConfig{});
    check({4, 16, 16, 16}, {32, 16, 3, 3}, Conv2dConfig{}.with_padding(1));  // timed
  }
}

/// Under Autocast the gradient of an f32 weight is a sum of 16-bit products. If no engine of cuDNN keeps it
/// wide it is rounded, which the tolerance of the operands allows.
TEST_F(CudaConv2d, WeightGradientsOfSixteenBitOperandsAreF32) {
  const op::ConvGeometry g = Conv2dConfig{}.with_padding(1).geometry;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const std::int64_t images : {1, 8}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(images));
      const Gpu x = random({images, 16, 16, 16}, dtype), dy = random({images, 32, 16, 16}, dtype);
      const op::Conv2dWeightGrad weight{g, {32, 16, 3, 3}, DType::f32};
      const Truth want = eval(weight, truth(dy), truth(x));
      const Gpu got = eval(weight, dy, x), sum = random({32, 16, 3, 3});
      EXPECT_EQ(got.dtype(), DType::f32);
      expect_near(got, want, 2 * tolerance_of(dtype, images * 256));
      const Truth more = want + truth(sum);
      run_into(*cuda, weight, {dy, x}, {sum}, 1);
      expect_near(sum, more, 2 * tolerance_of(dtype, images * 256));
    }
  }
}

TEST_F(CudaConv2d, LayoutsOfInputsAndBias) {
  for (const auto& [name, x] : layouts(*this, {2, 3, 8, 6}, DType::f32)) {
    SCOPED_TRACE(name);
    expect_convolution(x, random({4, 3, 3, 3}), {});
  }
  const Gpu x = random({2, 8, 8, 3}), w = random({4, 3, 3, 3}), b = slice(random({8}), 0, 0, 8, 2);
  const Gpu last = permute(x, {0, 3, 1, 2});  // channels last
  expect_near(conv2d(last, w, b), conv2d(truth(last), truth(w), truth(b)), tolerance_of(DType::f32, 27));
}

TEST_F(CudaConv2d, Tf32IsAnOptIn) {
  const Gpu x = random({4, 32, 24, 24}), w = random({32, 32, 3, 3});
  Cuda fast(0);
  fast.set_float32_products(Float32Products::tf32);
  const Truth want = conv2d(truth(x), truth(w));
  expect_near(conv2d(x, w), want, tolerance_of(DType::f32, 288));
  expect_near(conv2d(Gpu(fast, x.primitive()), Gpu(fast, w.primitive())), want,
              tolerance_of(DType::f16, 288));
}

TEST_F(CudaConv2d, SumsOfNothingAreZeroOrTheBias) {
  const Gpu bias = random({3});
  const Gpu y = conv2d(zeros(*cuda, {2, 0, 5, 5}), zeros(*cuda, {3, 0, 2, 2}), bias);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 4, 4}));
  expect_near(y, expand(reshape(truth(bias), {1, 3, 1, 1}), {2, 3, 4, 4}), 0);
  const Gpu dw =
      eval(op::Conv2dWeightGrad{{}, {3, 2, 2, 2}}, zeros(*cuda, {0, 3, 4, 4}), zeros(*cuda, {0, 2, 5, 5}));
  EXPECT_EQ(dw.to_vector<float>(), std::vector<float>(24, 0.0f));
}

TEST_F(CudaConv2d, SameBitsEveryTime) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Gpu x = random({8, 16, 32, 32}, dtype), w = random({16, 16, 3, 3}, dtype);
    const op::ConvGeometry g = Conv2dConfig{}.with_padding(1).geometry;
    const Gpu dy = random({8, 16, 32, 32}, dtype);
    const auto all = [&] {
      return std::vector{to_bytes(eval(op::Conv2d{g}, clone(x), clone(w))),
                         to_bytes(eval(op::Conv2dInputGrad{g, x.shape()}, clone(dy), clone(w))),
                         to_bytes(eval(op::Conv2dWeightGrad{g, w.shape()}, clone(dy), clone(x)))};
    };
    const auto first = all();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(all(), first);
  }
}

}  // namespace
}  // namespace ferrite::testing
