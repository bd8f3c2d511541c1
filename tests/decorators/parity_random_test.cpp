// No false alarms: right kernels pass Parity in random calls and in training, and not by a hair.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "decorators/random_calls.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/nn/sequential.hpp"
#include "ferrite/nn/transformer.hpp"
#include "ferrite/optim/adam.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

using ParityAutodiff = Autodiff<CpuParity>;

/// FERRITE_PARITY_ROUNDS times as many cases as usual, with other seeds.
std::uint64_t rounds() {
  const char* text = std::getenv("FERRITE_PARITY_ROUNDS");
  return text ? std::strtoull(text, nullptr, 10) : 1;
}

/// Errors stay below half of what is allowed, so that another machine's rounding does not tip a case over.
void expect_ample(CpuParity& b, const std::string& what) {
  for (const ParityReport& r : b.reports()) ADD_FAILURE() << what << ": " << r.message();
  std::istringstream table(b.table());
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string op, calls, compared, mismatches;
    double worst = 0;
    if (fields >> op >> calls >> compared >> mismatches >> worst && op != "total") {
      EXPECT_LT(worst, 0.5) << what << ", " << op;
    }
  }
}

TEST(ParityRandom, PassesRightKernelsWithRoomToSpare) {
  ScratchFolder folder;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const auto& [name, call] : random_calls<ParityAutodiff>()) {
      ParityAutodiff b(ParityConfig{}.with_throw(false).with_directory(folder / "reports"));
      for (std::uint64_t seed = 0; seed < 12 * rounds(); ++seed) run_random_call(b, call, {seed, dtype});
      expect_ample(b.inner(), name + " of " + std::string(to_string(dtype)));
    }
  }
}

TEST(ParityRandom, PassesGradientsThatCancelToZero) {
  // With one column the gradient of a norm is zero whatever goes in.
  ScratchFolder folder;
  ParityAutodiff b(ParityConfig{}.with_throw(false).with_directory(folder / "reports"));
  for (std::uint64_t seed = 0; seed < 40 * rounds(); ++seed) {
    Draw d(seed, DType::f32);
    const std::int64_t n = d.size();
    const auto y = layer_norm(d.leaf(b, {n, 1}), d.leaf(b, {1}), d.leaf(b, {1})) +
                   rms_norm(d.leaf(b, {n, 1}), d.leaf(b, {1}));
    sum(y * d.tensor(b, {n, 1})).backward();
  }
  expect_ample(b.inner(), "one column");
}

TEST(ParityRandom, PassesGradientsNearTheSmallestNumber) {
  ScratchFolder folder;
  ParityAutodiff b(ParityConfig{}.with_throw(false).with_directory(folder / "reports"));
  for (std::uint64_t seed = 0; seed < 20 * rounds(); ++seed) {
    Draw d(seed, DType::f32);
    const Shape s{1, 2, d.between(2, 20), d.between(2, 16)};
    const auto y = attention(d.leaf(b, s), d.leaf(b, s), d.leaf(b, s));
    sum(y * (d.tensor(b, s) * 1e-37)).backward();
  }
  expect_ample(b.inner(), "tiny gradients");
}

/// A transformer block and a norm over random features, a few steps.
TEST(ParityRandom, PassesTrainingFromAnySeed) {
  ScratchFolder folder;
  for (std::uint64_t seed = 0; seed < 2 * rounds(); ++seed) {
    ParityAutodiff b(ParityConfig{}.with_throw(false).with_directory(folder / "reports"));
    Rng rng(seed);
    nn::Sequential<ParityAutodiff> net;
    net.add(nn::Linear<ParityAutodiff>(b, {6, 16}, rng))
        .add(nn::TransformerBlock<ParityAutodiff>(b, {16, 2}, rng))
        .add(nn::LayerNorm<ParityAutodiff>(b, {16}))
        .add(nn::Linear<ParityAutodiff>(b, {16, 3}, rng));
    optim::AdamW<ParityAutodiff> optimizer(net.parameters(),
                                           optim::AdamWConfig{}.with_lr(5e-3).with_clip_norm(1));
    for (int step = 0; step < 15; ++step) {
      const auto x = randn(b, {8, 5, 6}, rng);
      const auto targets = argmax(slice(x, 2, 0, 3), 2);
      optimizer.step(softmax_cross_entropy(net.forward(x), targets).backward());
    }
    expect_ample(b.inner(), "training from seed " + std::to_string(seed));
  }
}

}  // namespace
}  // namespace ferrite::testing
