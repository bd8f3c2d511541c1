// rope on the GPU: packs and single elements, axes, layouts, far positions, sinks.
#include "ferrite/ops/rope.hpp"
#include "backend_cuda/contraction_support.hpp"

namespace ferrite::testing {
namespace {

struct CudaRope : CudaContraction {
  Gpu table(std::int64_t width, DType dtype) {
    return rope_frequencies(*cuda, RopeConfig{}, width, wide_dtype(dtype));
  }
  void expect_rope(const Gpu& x, const op::Rope& op) {
    const Gpu frequencies = table(x.size(-1), x.dtype());
    const Meta metas[] = {x.meta(), frequencies.meta()};
    const double tolerance = op_tolerance(op, metas, MetaSpan(metas, 1));
    expect_near(eval(op, x, frequencies), eval(op, truth(x), truth(frequencies)), tolerance);
  }
};

TEST_F(CudaRope, SizesAxesAndPairs) {
  for (const DType dtype : floats) {
    for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
      for (const Shape& shape :
           {Shape{2, 5, 3, 64}, Shape{1, 1, 1, 2}, Shape{2, 3, 9, 6}, Shape{3, 7, 4, 128},
            Shape{1, 33, 2, 16}, Shape{300, 2, 5, 8}, Shape{2, 0, 3, 8}}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(shape) + " " +
                     std::string(to_string(pairs)));
        const Gpu x = random(shape, dtype);
        for (const int axis : {-4, -3, -2}) expect_rope(x, op::Rope{axis, 3, pairs});
        expect_rope(x, op::Rope{-3, 0, pairs, true});
      }
    }
  }
}

TEST_F(CudaRope, Layouts) {
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours})
    for (const auto& [name, x] : layouts(*this, {2, 6, 5, 32}, DType::bf16)) {
      SCOPED_TRACE(name);
      expect_rope(x, op::Rope{-3, 1, pairs});
      expect_rope(transpose(x, 1, 2), op::Rope{-2, 1, pairs});
    }
  const Gpu packed = random({2, 6, 9, 64}, DType::bf16);
  expect_rope(slice(packed, 2, 0, 7), op::Rope{});
  expect_rope(slice(packed, 2, 1, 4), op::Rope{});
}

TEST_F(CudaRope, FarPositionsAreThoseOfTheCpu) {
  Cpu cpu;
  const std::vector<std::int64_t> positions = {0, 1, 4095, 65537, 100003, 131071};
  const auto x = rand(cpu, {6, 3, 64}, rng, -1, 1);
  const auto frequencies = rope_frequencies(cpu, RopeConfig{500000}, 64);
  const auto places = from_vector(cpu, positions);
  const auto want = rope(x, frequencies, places).to_vector<float>();
  for (const DType dtype : {DType::i64, DType::i32}) {
    const auto got =
        rope(to(*cuda, x), to(*cuda, frequencies), to(*cuda, cast(places, dtype))).to_vector<float>();
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 5e-7) << i;
  }
}

TEST_F(CudaRope, AddsIntoSlices) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Gpu x = random({2, 6, 3, 32}, dtype), packed = random({2, 6, 5, 32}, dtype);
    const Gpu apart = random({2, 6, 3, 65}, dtype), frequencies = table(32, dtype);
    for (const Gpu& sink : {slice(packed, 2, 1, 4), slice(apart, 3, 1, 65, 2)}) {
      const Truth turned = eval(op::Rope{}, truth(x), truth(frequencies)), before = truth(sink);
      run_into(*cuda, op::Rope{}, {x, frequencies}, {sink}, 1);
      expect_near(sink, before + turned, tolerance_of(dtype, 40));
      run_into(*cuda, op::Rope{}, {x, frequencies}, {sink}, 0);
      expect_near(sink, turned, tolerance_of(dtype, 40));
    }
  }
}

}  // namespace
}  // namespace ferrite::testing
