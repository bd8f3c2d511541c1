// Language models in 16 bits: a whole training step op by op against Reference, and f16 with a scaled loss.
#include "ferrite/nn/gpt.hpp"

#include <gtest/gtest.h>

#include "ferrite/decorators/autocast.hpp"
#include "ferrite/decorators/parity.hpp"
#include "train/token_batch.hpp"
#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using testing::Recorder;
using testing::same_bits;

constexpr std::int64_t length = 16;

template <class B>
struct GptRun {
  B backend;
  Rng rng{7};
  nn::Gpt<B> model;
  optim::AdamW<B> optimizer;
  data::Generated source;
  Recorder recorder;
  Trainer<B> trainer;

  GptRun(B on, const TrainerConfig& config)
      : backend(std::move(on)),
        model(backend,
              nn::GptConfig{}
                  .with_vocab(testing::token_vocabulary)
                  .with_context(length)
                  .with_layers(2)
                  .with_heads(2)
                  .with_dim(32),
              rng),
        optimizer(model.parameters(), optim::AdamWConfig{}
                                          .with_lr(0.01)
                                          .with_betas(0.9, 0.95)
                                          .with_no_decay(optim::biases_and_norms)
                                          .with_clip_norm(1)),
        source("texts",
               [](std::int64_t number) { return std::optional(testing::token_batch(number, 4, length)); }),
        trainer(model, optimizer, source, language_model(model), config) {
    trainer.add_observer(recorder);
  }
};

using Half = Autodiff<Autocast<Cpu>>;
Half half() { return Half(Autocast<Cpu>(AutocastConfig{}.with_dtype(DType::f16))); }

TEST(MixedPrecision, EveryOpOfATrainingStepAgreesWithTheReference) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    using Inner = Autocast<CpuParity>;
    Inner inner(AutocastConfig{}.with_dtype(dtype), ParityConfig{}.with_throw(false).with_files(0, 0));
    // The second step has the copies of the parameters that the optimiser has written.
    GptRun<Autodiff<Inner>> run(Autodiff<Inner>(inner), TrainerConfig{}.with_steps(2));
    run.trainer.fit();
    const auto reports = inner.inner().reports();
    for (const ParityReport& report : reports) ADD_FAILURE() << to_string(dtype) << ": " << report.message();
    const std::string table = inner.inner().table();
    // The Cpu composes linear and attention in 16 bits: their parts are compared.
    for (const char* op :
         {"matmul", "layer_norm_backward", "linear_cross_entropy", "embedding_backward", "adamw"})
      EXPECT_NE(table.find(op), std::string::npos) << op << " was not compared:\n" << table;
  }
}

TEST(MixedPrecision, Bf16FollowsF32) {
  const auto config = TrainerConfig{}.with_steps(20).with_report_every(1);
  GptRun<Autodiff<Cpu>> exact(Autodiff<Cpu>(), config);
  GptRun<Autodiff<Autocast<Cpu>>> mixed(Autodiff<Autocast<Cpu>>(), config);
  exact.trainer.fit();
  mixed.trainer.fit();
  EXPECT_FALSE(mixed.optimizer.scales_losses());
  ASSERT_EQ(mixed.recorder.progress.size(), exact.recorder.progress.size());
  bool differs = false;
  for (std::size_t i = 0; i < exact.recorder.progress.size(); ++i) {
    const Progress &got = mixed.recorder.progress[i], &want = exact.recorder.progress[i];
    EXPECT_NEAR(got.loss, want.loss, 2 * 0x1p-7 * want.loss) << "step " << got.step;  // twice its epsilon
    differs |= got.loss != want.loss;
  }
  EXPECT_TRUE(differs) << "nothing was rounded";
  EXPECT_LT(mixed.recorder.progress.back().loss, 0.7 * mixed.recorder.progress.front().loss);
}

TEST(MixedPrecision, F16ScalesItsLossesAndFollowsF32) {
  const auto config = TrainerConfig{}.with_steps(40).with_report_every(4);
  GptRun<Autodiff<Cpu>> exact(Autodiff<Cpu>(), config);
  GptRun<Half> mixed(half(), config);
  exact.trainer.fit();
  mixed.trainer.fit();
  ASSERT_TRUE(mixed.optimizer.scales_losses());
  EXPECT_FALSE(exact.optimizer.scales_losses());
  ASSERT_EQ(mixed.recorder.progress.size(), exact.recorder.progress.size());
  for (std::size_t i = 0; i < exact.recorder.progress.size(); ++i) {
    const Progress &got = mixed.recorder.progress[i], &want = exact.recorder.progress[i];
    EXPECT_NEAR(got.loss, want.loss, 0.02 * want.loss) << "step " << got.step;
    EXPECT_EQ(got.loss_scale, 65536);
    EXPECT_EQ(want.loss_scale, 0);
  }
  EXPECT_LT(exact.recorder.progress.back().loss, 0.5 * exact.recorder.progress.front().loss);
}

TEST(MixedPrecision, AnOverflowInF16CostsAnUpdateAndResumesBitForBit) {
  const testing::ScratchFolder folder;
  // The first scale is too large for f16; later it grows every third update.
  const auto scaler = optim::LossScalerConfig{}.with_initial(0x1p26).with_growth(2, 3);
  const auto config = TrainerConfig{}.with_steps(24).with_report_every(1).with_loss_scaler(scaler);
  GptRun<Half> whole(half(), config);
  whole.trainer.fit();
  const auto updates = whole.optimizer.state().at("steps").as<std::int64_t>()[0];
  EXPECT_GT(updates, 8);
  EXPECT_LT(updates, 24);
  EXPECT_LT(whole.recorder.progress[5].loss_scale, 0x1p26);
  EXPECT_LT(whole.recorder.progress.back().loss, whole.recorder.progress.front().loss);

  GptRun<Half> first(half(), config), second(half(), config);
  first.trainer.advance(13);
  first.trainer.save(folder / "a.safetensors");
  second.trainer.resume(folder / "a.safetensors");
  second.trainer.fit();
  EXPECT_TRUE(same_bits(second.model.state(), whole.model.state()));
  EXPECT_TRUE(same_bits(second.optimizer.state(), whole.optimizer.state()));
}

}  // namespace
}  // namespace ferrite::train
