// Parity over the real Cpu backend: right kernels pass a training run op by op, wrong ones are named.
#include <gtest/gtest.h>

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/stacks.hpp"
#include "messages.hpp"
#include "scratch_folder.hpp"

namespace ferrite {
namespace {

using testing::expect_contains;
using testing::message_of;

struct ParityOverCpu : ::testing::Test {
  testing::ScratchFolder folder;
  ParityConfig config() const { return ParityConfig{}.with_directory(folder / "reports"); }
};

struct WrongSoftmax : Cpu {
  friend void run(WrongSoftmax& b, const op::Softmax& op, Ins in, Outs out) {
    run(static_cast<Cpu&>(b), op, in, out);
    out[0].data<float>()[1] += 1e-3f;
  }
};

struct WrongSoftmaxBackward : Cpu {
  friend void run(WrongSoftmaxBackward& b, const op::SoftmaxBackward& op, Ins in, Outs out,
                  Accumulate mask = Accumulate::none) {
    run(static_cast<Cpu&>(b), op, in, out, mask);
    out[0].data<float>()[3] *= 0.5f;
  }
};

/// Takes beta 0 for every product.
struct NeverAccumulates : Cpu {
  friend void run(NeverAccumulates& b, const op::Matmul& op, Ins in, Outs out,
                  Accumulate = Accumulate::none) {
    run(static_cast<Cpu&>(b), op, in, out);
  }
};

template <class B>
Tensor<B> normal(B& b, const Shape& shape, std::uint64_t seed, DType dtype = DType::f32) {
  Rng rng(seed);
  return randn(b, shape, rng, 0, 1, dtype);
}

TEST_F(ParityOverCpu, NamesAWrongFusedForward) {
  Parity<WrongSoftmax, Reference> b(config());
  const auto x = normal(b, {3, 5}, 1);
  expect_contains(message_of<BackendError>([&] { softmax(x); }),
                  "[softmax] WrongSoftmax and reference differ: f32[3, 5] -> f32[3, 5]");
}

TEST_F(ParityOverCpu, NamesAWrongFusedBackward) {
  Autodiff<Parity<WrongSoftmaxBackward, Reference>> b(config());
  const auto x = parameter(normal(b, {3, 5}, 1), "x");
  const auto loss = sum(square(softmax(x)));
  const std::string message = message_of<BackendError>([&] { loss.backward(); });
  expect_contains(message, "[softmax_backward] WrongSoftmaxBackward and reference differ");
  expect_contains(message, "output 0 at [0, 3]");
  expect_contains(message, "reference is right");
}

TEST_F(ParityOverCpu, NamesAProductThatDoesNotAccumulate) {
  Autodiff<Parity<NeverAccumulates, Reference>> b(config());
  const auto x = normal(b, {4, 3}, 1), w = parameter(normal(b, {3, 2}, 2), "w");
  const auto loss = sum(matmul(x, w) + matmul(x * 2, w));
  expect_contains(
      message_of<BackendError>([&] { loss.backward(); }),
      "[matmul] NeverAccumulates and reference differ: f32[3, 4], f32[4, 2] -> f32[3, 2] (accumulating)");
}

/// A convolution, a normalisation, attention and a classifier, trained by AdamW; forward, backward and the
/// updates in place all go through parity.
void train(Autodiff<CpuParity>& b, DType dtype) {
  using D = Autodiff<CpuParity>;
  CpuParity& inner = b.inner();
  const Shape shapes[] = {{4, 1, 3, 3}, {4}, {4}, {16, 16}, {16}, {5, 16}, {5}};
  std::vector<Tensor<CpuParity>> parameters, first, second;
  for (std::size_t i = 0; i < std::size(shapes); ++i) {
    parameters.push_back(cast(normal(inner, shapes[i], i) * 0.3, dtype));
    first.push_back(zeros(inner, shapes[i], wide_dtype(dtype)));
    second.push_back(zeros(inner, shapes[i], wide_dtype(dtype)));
  }
  const Tensor<D> x = normal(b, {6, 1, 8, 8}, 40, dtype);
  const Tensor<D> labels = from_vector(b, std::vector<std::int64_t>{0, 1, 2, 3, 4, -100});
  Rng rng(3);
  for (std::int64_t step = 1; step <= 2; ++step) {
    std::vector<Tensor<D>> w;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      w.push_back(parameter(lift(b, parameters[i]), std::to_string(i)));
    const Tensor<D> h = gelu(conv2d(x, w[0], {}, Conv2dConfig{}.with_padding(1)));
    const Tensor<D> n = max_pool2d(batch_norm(h, w[1], w[2]).y, PoolConfig(2));             // [6, 4, 4, 4]
    const Tensor<D> tokens = linear(reshape(n, {6, 4, 16}), w[3], w[4], Activation::silu);  // [6, 4, 16]
    const Tensor<D> heads = transpose(reshape(tokens, {6, 4, 2, 8}), 1, 2);                 // [6, 2, 4, 8]
    const Tensor<D> mixed = attention(heads, heads, heads, AttentionConfig{}.with_causal(true));
    const Tensor<D> joined = dropout(reshape(transpose(mixed, 1, 2), {6, 4, 16}), 0.1, rng);
    const Tensor<D> logits = linear(mean(joined + tokens, {1}), w[5], w[6]);
    const Tensor<D> loss =
        softmax_cross_entropy(logits, labels, CrossEntropyConfig{}.with_label_smoothing(0.1));
    const auto grads = loss.backward();

    std::vector<Array> all, out;
    for (const auto& p : parameters) all.push_back(p.primitive());
    for (const auto& leaf : w) all.push_back(grads.of(leaf).primitive());
    for (const auto& m : first) all.push_back(m.primitive());
    for (const auto& v : second) all.push_back(v.primitive());
    all.push_back(ones(inner, {}).primitive());
    std::vector<const Array*> in;
    for (const Array& a : all) in.push_back(&a);
    const std::size_t k = parameters.size();
    for (std::size_t i = 0; i < 3 * k; ++i) out.push_back(all[i < k ? i : i + k]);
    op::Adam adam;
    adam.lr = 0.01;
    adam.eps = 1e-3;  // a gradient that is zero but for rounding must not become a step
    adam.step = step;
    evaluate_in_place(inner, adam, Ins(in.data(), in.size()), out);
  }
}

TEST_F(ParityOverCpu, PassesTrainingInEveryFloatingDtype) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    SCOPED_TRACE(to_string(dtype));
    Autodiff<CpuParity> b(config());
    EXPECT_EQ(message_of<BackendError>([&] { train(b, dtype); }), "(no error of this kind)");
    const std::string table = b.inner().table();
    for (const char* op : {"batch_norm_backward", "max_pool2d_backward", "softmax_cross_entropy", "adamw"})
      expect_contains(table, op);
    // Composed for 16-bit dtypes: parity then checks what they are composed of.
    if (size_of(dtype) > 2) expect_contains(table, "attention_backward");
  }
}

TEST_F(ParityOverCpu, RunningFreeKeepsTheShadowInStepThroughTraining) {
  Autodiff<CpuParity> b(config().with_mode(ParityMode::free_running));
  train(b, DType::f64);
  // Drift in f64 stays far below what would change a digit of f32.
  for (const ParityReport& report : b.inner().reports())
    EXPECT_LT(report.comparison.error, 1e-9) << report.message();
}

}  // namespace
}  // namespace ferrite
