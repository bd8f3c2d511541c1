// gated_activation on the GPU: packs and single elements, layouts, sinks, large values.
#include "ferrite/ops/gated_activation.hpp"
#include "backend_cuda/contraction_support.hpp"

namespace ferrite::testing {
namespace {

struct CudaGatedActivation : CudaContraction {
  void expect_gate(const Gpu& gate, const Gpu& up, Activation activation) {
    const op::GatedActivation op{activation};
    const double tolerance = tolerance_of(gate.dtype(), 2);
    expect_near(eval(op, gate, up), eval(op, truth(gate), truth(up)), tolerance);
    const op::GatedActivationBackward backward{activation};
    const Gpu dy = random(gate.shape(), gate.dtype());
    const auto got = eval_all(backward, dy, gate, up);
    const auto want = eval_all(backward, truth(dy), truth(gate), truth(up));
    for (std::size_t i = 0; i < 2; ++i) expect_near(got[i], want[i], tolerance);
  }
};

TEST_F(CudaGatedActivation, SizesAndDtypes) {
  for (const DType dtype : floats)
    for (const Activation activation : {Activation::silu, Activation::gelu, Activation::relu})
      for (const Shape& shape :
           {Shape{1}, Shape{7}, Shape{16}, Shape{3, 1000}, Shape{5, 1027}, Shape{0, 4}}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(shape));
        expect_gate(random(shape, dtype) * 6, random(shape, dtype), activation);
      }
}

TEST_F(CudaGatedActivation, Layouts) {
  for (const auto& [name, gate] : layouts(*this, {6, 32}, DType::bf16))
    for (const auto& [other, up] : layouts(*this, {6, 32}, DType::bf16)) {
      SCOPED_TRACE(name + " and " + other);
      expect_gate(gate, up, Activation::silu);
    }
}

TEST_F(CudaGatedActivation, GradientsAreAddedToWhatIsThere) {
  const Gpu gate = random({70, 40}), up = random({70, 40}), dy = random({70, 40});
  const op::GatedActivationBackward backward{};
  const auto alone = eval_all(backward, dy, gate, up);
  for (std::uint32_t mask = 0; mask < 4; ++mask) {
    const std::vector<Gpu> sinks = {transpose(random({40, 70}), 0, 1), random({70, 40})};
    std::vector<Truth> sums;
    for (std::size_t i = 0; i < 2; ++i)
      sums.push_back(truth(alone[i]) + static_cast<double>(mask >> i & 1u) * truth(sinks[i]));
    run_into(*cuda, backward, {dy, gate, up}, sinks, mask);
    for (std::size_t i = 0; i < 2; ++i) expect_near(sinks[i], sums[i], 1e-6);
  }
}

}  // namespace
}  // namespace ferrite::testing
