// Linear on the GPU: every activation with and without its epilogue in cuBLASLt.
#include "ferrite/ops/linear.hpp"
#include "backend_cuda/contraction_support.hpp"

namespace ferrite::testing {
namespace {

constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::gelu,
                                      Activation::silu, Activation::tanh, Activation::sigmoid};

struct CudaLinear : CudaContraction {
  void expect_all_outputs(const op::Linear& op, std::initializer_list<Gpu> in) {
    std::vector<Gpu> inputs(in);
    std::vector<Truth> truths;
    for (const Gpu& x : inputs) truths.push_back(truth(x));
    const auto got = eval_list(op, TensorSpan<Cuda>(inputs.data(), inputs.size()));
    const auto want = eval_list(op, TensorSpan<Reference>(truths.data(), truths.size()));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t k = 0; k < got.size(); ++k)
      expect_near(got[k], want[k], 2 * tolerance_of(inputs[0].dtype(), inputs[0].size(1)));
  }
};

TEST_F(CudaLinear, EveryActivationWithAndWithoutBias) {
  for (const DType dtype : floats) {
    for (const Activation activation : activations) {
      // Rows of 8, which gelu's epilogue needs, and rows that are odd or single.
      for (const Shape& s : {Shape{1, 1, 1}, {33, 40, 24}, {7, 129, 31}, {200, 64, 256}, {64, 300, 1}}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::string(op::to_string(activation)) + " " +
                     to_string(s));
        const Gpu x = random({s[0], s[1]}, dtype), w = random({s[2], s[1]}, dtype);
        expect_all_outputs({activation}, {x, w, random({s[2]}, dtype)});
        expect_all_outputs({activation}, {x, w});
      }
    }
  }
}

TEST_F(CudaLinear, EveryLayout) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Activation activation : {Activation::relu, Activation::gelu}) {
      const Gpu bias = slice(random({49}, dtype), 0, 1, 49, 2), plain = random({24, 40}, dtype);
      for (const auto& [name, x] : layouts(*this, {34, 40}, dtype)) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " x " + name);
        expect_all_outputs({activation}, {x, plain, bias});
      }
      for (const auto& [name, w] : layouts(*this, {24, 40}, dtype)) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " weight " + name);
        expect_all_outputs({activation}, {random({34, 40}, dtype), w, slice(random({25}, dtype), 0, 1)});
      }
    }
  }
}

TEST_F(CudaLinear, OutputsOfEveryLayout) {
  for (const Activation activation : {Activation::none, Activation::gelu}) {
    const op::Linear op{activation};
    for (const auto& [name, y] : layouts(*this, {34, 24}, DType::f16)) {
      if (name == "one row repeated") continue;
      SCOPED_TRACE(name);
      const Gpu x = random({34, 40}, DType::f16), w = random({24, 40}, DType::f16);
      const Gpu b = random({24}, DType::f16), pre = transpose(random({24, 34}, DType::f16), 0, 1);
      std::vector<Gpu> out = {y};
      if (op.keeps_pre_activation()) out.push_back(pre);
      run_into(*cuda, op, {x, w, b}, out);
      expect_near(y, linear(truth(x), truth(w), truth(b), activation), 2 * tolerance_of(DType::f16, 40));
    }
  }
}

TEST_F(CudaLinear, AddsAResidualOfEveryLayout) {
  for (const DType dtype : floats) {
    for (const Shape& s : {Shape{1, 1, 1}, {33, 40, 24}, {7, 129, 31}, {200, 64, 256}, {64, 300, 1}}) {
      const Gpu x = random({s[0], s[1]}, dtype), w = random({s[2], s[1]}, dtype), b = random({s[2]}, dtype);
      for (const auto& [name, residual] : layouts(*this, {s[0], s[2]}, dtype)) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(s) + " " + name);
        expect_all_outputs({}, {x, w, b, residual});
        expect_all_outputs({}, {x, w, residual});
      }
    }
  }
}

/// Large enough for the plan to be chosen by time: between a residual in the product and one added after it.
TEST_F(CudaLinear, TheResidualOfALargeProductIsAddedOnce) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Gpu x = random({512, 768}, dtype), w = random({768, 768}, dtype), b = random({768}, dtype);
    const Gpu residual = random({512, 768}, dtype);
    SCOPED_TRACE(to_string(dtype));
    for (int call = 0; call < 3; ++call) expect_all_outputs({}, {x, w, b, residual});
    expect_all_outputs({}, {x, w, residual});
    expect_near(residual, truth(residual), 0);
  }
}

/// In f16 the sum is rounded once: the product alone is out of range.
TEST_F(CudaLinear, AResidualBringsAProductBackIntoRange) {
  const Gpu x = full(*cuda, {16, 64}, 64, DType::f16), w = full(*cuda, {32, 64}, 16, DType::f16);
  const Gpu residual = full(*cuda, {16, 32}, -60000, DType::f16);
  for (const double value : linear(x, w, {}, Activation::none, residual).to_vector<double>())
    ASSERT_EQ(value, 5536);
}

TEST_F(CudaLinear, EmptyInnerDimensionsLeaveTheResidual) {
  expect_all_outputs({}, {random({3, 0}), random({4, 0}), random({4}), random({3, 4})});
  expect_all_outputs({}, {random({3, 0}), random({4, 0}), random({3, 4})});
}

TEST_F(CudaLinear, ReluKeepsNaN) {
  for (const DType dtype : floats) {
    const Gpu x = full(*cuda, {16, 64}, std::numeric_limits<double>::quiet_NaN(), dtype);
    const auto y = linear(x, random({32, 64}, dtype), random({32}, dtype), Activation::relu);
    for (const double value : y.to_vector<double>()) ASSERT_TRUE(std::isnan(value)) << to_string(dtype);
  }
}

TEST_F(CudaLinear, EmptyInnerDimensionsLeaveTheBias) {
  const Gpu b = random({4});
  for (const Activation activation : activations)
    expect_all_outputs({activation}, {random({3, 0}), random({4, 0}), b});
}

}  // namespace
}  // namespace ferrite::testing
