// A trainer takes its batches from token files, and resumes as if it had never stopped.
#include <gtest/gtest.h>

#include "ferrite/data/token_loader.hpp"
#include "ferrite/nn/linear.hpp"
#include "io/io_test.hpp"
#include "train/train_test.hpp"

namespace ferrite::testing {
namespace {

/// Predicts the next token from the last one.
struct TokenRun {
  using B = Autodiff<AnyBackend>;
  static constexpr std::int64_t vocabulary = 17;

  B backend{"cpu"};
  nn::Sequential<B> net;
  std::optional<optim::AdamW<B>> optimizer;
  std::optional<train::Trainer<B>> trainer;

  explicit TokenRun(data::BatchSource& source) {
    Rng rng(1);
    net.add("table", nn::Embedding<B>(backend, {vocabulary, 8}, rng));
    net.add("head", nn::Linear<B>(backend, {8, vocabulary}, rng));
    optimizer.emplace(net.parameters(), optim::AdamWConfig{}.with_lr(0.05));
    trainer.emplace(net, *optimizer, source, train::supervised(net, cross_entropy),
                    train::TrainerConfig{}.with_steps(60));
  }
};

TEST(TrainerOnTokens, LearnsAndResumesBitForBitAndRefusesOtherData) {
  const ScratchFolder folder;
  for (int file = 0; file < 2; ++file) {
    std::vector<std::int32_t> ids(200);  // each token follows from the one before
    for (std::size_t i = 1; i < ids.size(); ++i) ids[i] = (ids[i - 1] * 3 + 1) % 17;
    data::TokenFileWriter out(folder / ("s" + std::to_string(file) + ".bin"), DType::u16);
    out.write(ids);
    out.commit();
  }
  const std::string pattern = (folder / "s*.bin").string();
  const auto config =
      data::TokenLoaderConfig{}.with_batch(4, 8).with_seed(3).with_vocab(TokenRun::vocabulary);
  data::TokenLoader plain(pattern, config);
  TokenRun whole(plain);
  whole.trainer->fit();
  EXPECT_EQ(plain.position(), (data::LoaderPosition{5, 0}));  // 12 batches an epoch
  const data::Batch<TokenRun::B> batch = data::to_batch(whole.backend, plain.next());
  EXPECT_LT(softmax_cross_entropy(whole.net.forward(batch.x), batch.y).item<double>(), 0.5);

  data::TokenLoader loader(pattern, config), other(pattern, config), differs(pattern, config.with_seed(4));
  {
    data::Prefetch ahead(loader);
    TokenRun first(ahead);
    first.trainer->advance(17);
    first.trainer->save(folder / "a.safetensors");
  }
  data::Prefetch ahead(other, 4);
  TokenRun second(ahead);
  second.trainer->resume(folder / "a.safetensors");
  EXPECT_EQ(ahead.position(), (data::LoaderPosition{1, 5}));
  second.trainer->fit();
  EXPECT_TRUE(same_bits(second.net.state(), whole.net.state()));

  TokenRun refused(differs);
  expect_error<ValueError>([&] { refused.trainer->resume(folder / "a.safetensors"); },
                           {"shuffled by seed 3", "shuffled by seed 4"});
}

}  // namespace
}  // namespace ferrite::testing
