// QuantizedLinear on the GPU: few rows, which have a kernel of their own, and many.
#include "ferrite/ops/quantized_linear.hpp"
#include "backend_cuda/contraction_support.hpp"
#include "ferrite/backend/cuda_graph.hpp"

namespace ferrite::testing {
namespace {

struct CudaQuantizedLinear : CudaContraction {
  Gpu weights(const Shape& shape) { return to(*cuda, cast(randint(host, shape, rng, -127, 128), DType::i8)); }
  void expect_result(const op::QuantizedLinear& op, std::vector<Gpu> inputs) {
    std::vector<Truth> truths;
    for (const Gpu& x : inputs) truths.push_back(truth(x));
    const auto got = eval_list(op, TensorSpan<Cuda>(inputs.data(), inputs.size()));
    const auto want = eval_list(op, TensorSpan<Reference>(truths.data(), truths.size()));
    expect_near(got[0], want[0], 2 * tolerance_of(inputs[0].dtype(), inputs[0].size(1)));
  }
};

constexpr DType narrow[] = {DType::f32, DType::f16, DType::bf16};

TEST_F(CudaQuantizedLinear, EveryNumberOfRowsAndActivation) {
  for (const DType dtype : narrow) {
    for (const std::int64_t rows : {1, 2, 4, 5, 8, 9, 16, 17, 100}) {
      for (const auto activation : {Activation::none, Activation::relu, Activation::gelu, Activation::silu,
                                    Activation::tanh, Activation::sigmoid}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(rows) + " rows " +
                     std::string(op::to_string(activation)));
        const Gpu x = random({rows, 96}, dtype), w = weights({70, 96}), scale = random({70}) / 32;
        expect_result({activation}, {x, w, scale, random({70}, dtype)});
        expect_result({activation}, {x, w, scale});
      }
    }
  }
}

/// With four rows of weights for a warp, and with one; lengths of several steps of a warp and of a part of
/// it.
TEST_F(CudaQuantizedLinear, EveryNumberOfColumnsAndLength) {
  for (const DType dtype : narrow) {
    for (const std::int64_t columns : {1, 3, 129, 8191, 8192, 8193, 8195}) {
      for (const std::int64_t inner : {0, 1, 16, 100, 512, 528, 3072}) {
        for (const std::int64_t rows : {1, 3, 16}) {
          if (columns > 1000 && rows == 3) continue;
          SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(Shape{rows, columns, inner}));
          expect_result({}, {random({rows, inner}, dtype), weights({columns, inner}), random({columns}) / 32,
                             random({columns}, dtype)});
        }
      }
    }
  }
}

TEST_F(CudaQuantizedLinear, EveryLayoutAndABiasOfF32) {
  for (const std::int64_t rows : {4, 34}) {
    for (const auto& [name, x] : layouts(*this, {rows, 48}, DType::bf16)) {
      SCOPED_TRACE(name);
      expect_result({Activation::gelu}, {x, weights({24, 48}), random({24}) / 32, random({24})});
    }
    for (const auto& [name, y] : layouts(*this, {rows, 24}, DType::f32)) {
      if (name == "one row repeated") continue;
      SCOPED_TRACE(name);
      const Gpu x = random({rows, 48}), w = transpose(weights({48, 24}), 0, 1);
      const Gpu scale = slice(random({49}), 0, 1, 49, 2);
      run_into(*cuda, op::QuantizedLinear{}, {x, w, scale}, {y});
      const Truth want = eval(op::QuantizedLinear{}, truth(x), truth(w), truth(scale));
      expect_near(y, want, 2 * tolerance_of(DType::f32, 48));
    }
  }
}

TEST_F(CudaQuantizedLinear, IsCapturedAndGivesTheSameBits) {
  for (const std::int64_t rows : {1, 16, 40}) {
    const Gpu x = random({rows, 768}, DType::bf16), w = weights({9000, 768}), scale = random({9000}) / 32;
    const Gpu eager = quantized_linear(x, w, scale);
    Gpu y;
    auto graph = CudaGraph::capture(*cuda, [&] { y = quantized_linear(x, w, scale); });
    graph.replay();
    EXPECT_EQ(y.to_vector<float>(), eager.to_vector<float>());
  }
}

}  // namespace
}  // namespace ferrite::testing
