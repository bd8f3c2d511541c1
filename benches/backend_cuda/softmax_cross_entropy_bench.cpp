// softmax_cross_entropy: forward, backward, and both as a training step runs them, through autodiff; there
// also linear_cross_entropy, with the product that makes the logits.
#include "ferrite/ops/linear_cross_entropy.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

Measurement whole_loss(std::int64_t rows, std::int64_t classes) {
  Autodiff<Cuda> b;
  Rng rng(1);
  const auto logits = parameter(randn(b, {rows, classes}, rng, 0, 1, DType::bf16), "logits");
  const auto targets = randint(b, {rows}, rng, 0, classes);
  Gradients<Cuda> gradients;
  Measurement m =
      time_calls(b.inner(), [&] { gradients = softmax_cross_entropy(logits, targets).backward(); });
  m.bytes = 2 * static_cast<double>(logits.meta().bytes());  // read once, the gradient written once
  return m;
}

Measurement whole_linear_loss(std::int64_t rows, std::int64_t length, std::int64_t classes) {
  Autodiff<Cuda> b;
  Rng rng(1);
  const auto x = parameter(randn(b, {rows, length}, rng, 0, 1, DType::bf16), "x");
  const auto weight = parameter(randn(b, {classes, length}, rng, 0, 0.02, DType::bf16), "weight");
  const auto targets = randint(b, {rows}, rng, 0, classes);
  Gradients<Cuda> gradients;
  Measurement m =
      time_calls(b.inner(), [&] { gradients = linear_cross_entropy(x, weight, targets).backward(); });
  m.flops = 6 * static_cast<double>(rows) * static_cast<double>(length) * static_cast<double>(classes);
  return m;
}

}  // namespace

void add_cross_entropy(Suite& suite) {
  const auto add = [&](DType dtype, std::int64_t rows, std::int64_t classes, Reach reach) {
    const auto logits = [=](auto& b, Rng& rng) { return randn(b, {rows, classes}, rng, 0, 1, dtype); };
    const auto targets = [=](auto& b, Rng& rng) { return randint(b, {rows}, rng, 0, classes); };
    const auto name = [&](const char* op) {
      return row_name(op, to_string(dtype), extents({rows, classes}));
    };
    suite.add_op(
        name("cross_entropy"), op::SoftmaxCrossEntropy{},
        [=](auto& b, Rng& rng) {
          return std::vector{logits(b, rng), targets(b, rng)};
        },
        reach);
    suite.add_op(
        name("cross_entropy_backward"), op::SoftmaxCrossEntropyBackward{},
        [=](auto& b, Rng& rng) {
          const auto x = logits(b, rng), y = targets(b, rng);
          // Numbers that the dtype has: PyTorch knows no others here.
          const auto dloss = cast(randn(b, {rows}, rng, 0, 1, dtype), DType::f32);
          return std::vector{dloss, x, y, eval_all(op::SoftmaxCrossEntropy{}, x, y)[1]};
        },
        reach);
  };
  add(DType::f32, 1024, 1000, Reach::naive);
  add(DType::f32, 8192, 50304, Reach::cuda);
  add(DType::bf16, 8192, 50304, Reach::cuda);
  suite.add("cross_entropy_both/bf16/32768x50304", [] { return whole_loss(32768, 50304); });
  for (const std::int64_t rows : {32768, 65536})
    suite.add(row_name("linear_cross_entropy_both", "bf16", extents({rows, 768, 50304})),
              [rows] { return whole_linear_loss(rows, 768, 50304); });
}

}  // namespace ferrite::bench
