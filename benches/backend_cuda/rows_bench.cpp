// softmax, layer_norm, rms_norm and gated_activation over the last axis, forward and backward; rope.
#include "ferrite/ops/gated_activation.hpp"
#include "ferrite/ops/rms_norm.hpp"
#include "ferrite/ops/rope.hpp"
#include "ferrite/ops/softmax.hpp"
#include "suite.hpp"

namespace ferrite::bench {

void add_row_ops(Suite& suite) {
  const auto add = [&](DType dtype, const Shape& shape, Reach reach) {
    const auto draw = [=](auto& b, Rng& rng) { return randn(b, shape, rng, 0, 1, dtype); };
    const auto channels = [=](auto& b, Rng& rng) { return randn(b, {shape.back()}, rng, 0, 1, dtype); };
    const auto name = [&](const char* op) { return row_name(op, to_string(dtype), extents(shape)); };

    suite.add_op(
        name("softmax"), op::Softmax{}, [=](auto& b, Rng& rng) { return std::vector{draw(b, rng)}; }, reach);
    suite.add_op(
        name("softmax_backward"), op::SoftmaxBackward{},
        [=](auto& b, Rng& rng) {
          return std::vector{softmax(draw(b, rng)), draw(b, rng)};
        },
        reach);

    suite.add_op(
        name("layer_norm"), op::LayerNorm{},
        [=](auto& b, Rng& rng) {
          return std::vector{draw(b, rng), channels(b, rng), channels(b, rng)};
        },
        reach);
    suite.add_op(
        name("layer_norm_backward"), op::LayerNormBackward{},
        [=](auto& b, Rng& rng) {
          const auto x = draw(b, rng), weight = channels(b, rng);
          const auto y = eval_all(op::LayerNorm{}, x, weight, weight);
          return std::vector{draw(b, rng), x, weight, y[1], y[2]};
        },
        reach);

    suite.add_op(
        name("rms_norm"), op::RmsNorm{},
        [=](auto& b, Rng& rng) {
          return std::vector{draw(b, rng), channels(b, rng)};
        },
        reach);
    suite.add_op(
        name("rms_norm_backward"), op::RmsNormBackward{},
        [=](auto& b, Rng& rng) {
          const auto x = draw(b, rng), weight = channels(b, rng);
          const auto y = eval_all(op::RmsNorm{}, x, weight);
          return std::vector{draw(b, rng), x, weight, y[1]};
        },
        reach);

    suite.add_op(
        name("gated_activation"), op::GatedActivation{},
        [=](auto& b, Rng& rng) {
          return std::vector{draw(b, rng), draw(b, rng)};
        },
        reach);
    suite.add_op(
        name("gated_activation_backward"), op::GatedActivationBackward{},
        [=](auto& b, Rng& rng) {
          return std::vector{draw(b, rng), draw(b, rng), draw(b, rng)};
        },
        reach);
  };
  add(DType::f32, {1024, 768}, Reach::naive);
  for (const Shape& shape : {Shape{65536, 768}, Shape{8192, 8192}, Shape{8192, 50304}}) {
    add(DType::f32, shape, Reach::cuda);
    add(DType::bf16, shape, Reach::cuda);
  }
  const Shape heads{8192, 40, 128};  // of queries and keys, position by position
  for (const DType dtype : {DType::f32, DType::bf16})
    suite.add_op(
        row_name("rope", to_string(dtype), extents(heads)), op::Rope{},
        [=](auto& b, Rng& rng) {
          return std::vector{randn(b, heads, rng, 0, 1, dtype),
                             rope_frequencies(b, RopeConfig{}, heads.back())};
        },
        Reach::cuda);
}

}  // namespace ferrite::bench
