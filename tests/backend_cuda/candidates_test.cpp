// Every algorithm the autotuner may choose computes the same thing: each candidate in turn, in a process of
// its own (the choice is read once), against Reference. gemm_small_test.cpp reaches the variants of our
// own products that no candidate list holds.
#include "backend_cuda/contraction_support.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/linear.hpp"

namespace ferrite::testing {
namespace {

struct CudaCandidates : CudaContraction {
  void SetUp() override {
    CudaContraction::SetUp();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void TearDown() override { unsetenv("FERRITE_AUTOTUNE"); }

  bool near(const Gpu& got, const Truth& want, DType precision, std::int64_t length) {
    const auto values = got.to_vector<double>(), truth = want.to_vector<double>();
    double scale = 0, worst = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      scale = std::max(scale, std::abs(truth[i]));
      worst = std::max(worst, std::abs(values[i] - truth[i]));
    }
    return worst <= 2 * tolerance_of(precision, length) * scale;
  }
  bool products_agree() {
    bool good = true;
    for (const DType dtype : floats) {
      for (const int transposed : {0, 1, 2, 3}) {
        const Gpu a =
            transposed & 1 ? transpose(random({2, 560, 200}, dtype), 1, 2) : random({2, 200, 560}, dtype);
        const Gpu b =
            transposed & 2 ? transpose(random({2, 136, 560}, dtype), 1, 2) : random({2, 560, 136}, dtype);
        const Truth want = matmul(truth(a), truth(b));
        const Gpu one_a = slice(a, 0, 0, 1), one_b = slice(b, 0, 0, 1);
        good &= near(matmul(a, b), want, dtype, 560);
        good &= near(matmul(one_a, one_b), slice(want, 0, 0, 1), dtype, 560);
        const Gpu sum = random({2, 200, 136}, dtype);
        const Truth more = want + truth(sum);
        run_into(*cuda, op::Matmul{}, {a, b}, {sum}, 1);
        good &= near(sum, more, dtype, 560);
      }
    }
    cuda->set_float32_products(Float32Products::tf32);
    const Gpu a = random({200, 560}), b = random({560, 136});
    return good && near(matmul(a, b), matmul(truth(a), truth(b)), DType::f16, 560);
  }
  bool residuals_agree() {
    bool good = true;
    for (const DType dtype : floats) {
      const Gpu x = random({200, 560}, dtype), w = random({136, 560}, dtype), b = random({136}, dtype);
      const Gpu rows = random({200, 140}, dtype), residual = slice(rows, 1, 0, 136);
      const Truth product = linear(truth(x), truth(w)), want = product + truth(residual);
      good &= near(linear(x, w, {}, Activation::none, residual), want, dtype, 560);
      good &= near(linear(x, w, b, Activation::none, residual), want + truth(b), dtype, 560);
    }
    return good;
  }
  bool convolutions_agree(DType dtype, bool tf32) {
    cuda->set_float32_products(tf32 ? Float32Products::tf32 : Float32Products::exact);
    const DType precision = tf32 ? DType::f16 : dtype;
    const op::ConvGeometry g = Conv2dConfig{}.with_padding(1).geometry;
    const Gpu x = random({4, 24, 20, 20}, dtype), w = random({32, 24, 3, 3}, dtype);
    const Gpu dy = random({4, 32, 20, 20}, dtype);
    const op::Conv2dInputGrad input{g, x.shape()};
    const op::Conv2dWeightGrad weight{g, w.shape()};
    return near(eval(op::Conv2d{g}, x, w), eval(op::Conv2d{g}, truth(x), truth(w)), precision, 216) &&
           near(eval(input, dy, w), eval(input, truth(dy), truth(w)), precision, 288) &&
           near(eval(weight, dy, x), eval(weight, truth(dy), truth(x)), precision, 1600);
  }
  void expect_each(int candidates, const std::function<bool()>& agree) {
    for (int i = 0; i < candidates; ++i) {
      SCOPED_TRACE("candidate " + std::to_string(i));
      setenv("FERRITE_AUTOTUNE", ("0:" + std::to_string(i)).c_str(), 1);
      EXPECT_EXIT(std::_Exit(agree() ? 0 : 1), ::testing::ExitedWithCode(0), "");
    }
  }
};

TEST_F(CudaCandidates, Products) {
  expect_each(16, [&] { return products_agree(); });  // up to 8 of the library, the rest our own
}
TEST_F(CudaCandidates, ProductsWithAResidual) {
  expect_each(9, [&] { return residuals_agree(); });  // up to 8 of the library, and the sum apart
}
TEST_F(CudaCandidates, Convolutions) {
  expect_each(14, [&] { return convolutions_agree(DType::f32, false); });
}
TEST_F(CudaCandidates, ConvolutionsOnTensorCores) {
  expect_each(20,
              [&] { return convolutions_agree(DType::f32, true) && convolutions_agree(DType::bf16, false); });
}

}  // namespace
}  // namespace ferrite::testing
