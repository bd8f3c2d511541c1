// Every op of a whole training step in mixed precision, forward, backward and update, against the Cpu.
#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/nn/gpt.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using Inner = Autocast<CudaParity>;
using CheckedCuda = Autodiff<Inner>;

class CudaTrainingStep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }

  void expect_parity(const nn::GptConfig& config, DType dtype, int steps, std::int64_t length) {
    Inner inner(AutocastConfig{}.with_dtype(dtype), ParityConfig{}.with_throw(false).with_files(0, 0));
    CheckedCuda backend(inner);
    Rng rng(7);
    nn::Gpt<CheckedCuda> model(backend, config, rng);
    optim::AdamW<CheckedCuda> optimizer(model.parameters(), optim::AdamWConfig{}
                                                                .with_lr(1e-3)
                                                                .with_weight_decay(0.1)
                                                                .with_no_decay(optim::biases_and_norms)
                                                                .with_clip_norm(1));
    if (dtype == DType::f16) optimizer.scale_losses();
    for (int step = 0; step < steps; ++step) {
      const auto text = randint(backend, {1, length + 1}, rng, 0, config.vocab);
      const auto loss = model.loss(slice(text, 1, 0, length), slice(text, 1, 1, length + 1));
      optimizer.step(optimizer.scaled(loss).backward());
    }
    for (const ParityReport& report : inner.inner().reports())
      ADD_FAILURE() << to_string(dtype) << ": " << report.message();
    const std::string table = inner.inner().table();
    for (const char* op : {"linear", "self_attention", "layer_norm", "linear_cross_entropy", "adamw"})
      EXPECT_NE(table.find(op), std::string::npos) << op << " was not compared:\n" << table;
  }
};

/// The second step has the copies of the parameters that the optimiser has written.
TEST_F(CudaTrainingStep, OfTwoLayersAgreesWithTheCpu) {
  for (const DType dtype : {DType::bf16, DType::f16})
    expect_parity(nn::GptConfig::gpt2().with_layers(2), dtype, 2, 128);
}

TEST_F(CudaTrainingStep, OfTheWholeModelAgreesWithTheCpu) {
  expect_parity(nn::GptConfig::gpt2(), DType::bf16, 1, 128);
}

}  // namespace
}  // namespace ferrite
