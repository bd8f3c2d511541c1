// Training: the merges of Hugging Face's trainer, limits, threads.
#include "ferrite/text/bpe_trainer.hpp"

#include "ferrite/core/thread_pool.hpp"
#include "text_test.hpp"

namespace ferrite::text {
namespace {

using testing::expect_error;
using testing::ScratchFolder;
using testing::slurp;
using testing::vectors;

std::string merges_of(const BytePairTokenizer& tokenizer) {
  const ScratchFolder folder;
  tokenizer.save(folder / "merges.txt");
  return slurp(folder / "merges.txt");
}

BytePairTokenizer train(std::string_view text, const TrainerConfig& config) {
  BytePairTrainer trainer(config);
  trainer.add(text);
  return trainer.train();
}

TEST(BytePairTrainer, FindsTheMergesOfTokenizers) {
  const std::string corpus = vectors()["training"]["corpus"];
  for (const auto& [least_count, merges] : vectors()["training"]["merges"].items()) {
    std::string expected = "#version: 0.2\n";
    for (const std::string merge : merges) expected += merge + "\n";
    const auto config = TrainerConfig{}.with_vocabulary_size(1000).with_least_count(std::stoi(least_count));
    EXPECT_EQ(merges_of(train(corpus, config.with_special_tokens({}))), expected);
  }
}

TEST(BytePairTrainer, TheResultEncodesAndHasSpecialTokensAtTheEnd) {
  const std::string corpus = vectors()["training"]["corpus"];
  const auto tokenizer = train(corpus, TrainerConfig{}.with_vocabulary_size(500));
  EXPECT_EQ(tokenizer.vocabulary_size(), 500);
  EXPECT_EQ(tokenizer.special_token("<|endoftext|>"), 499);
  const auto ids = tokenizer.encode(corpus);
  EXPECT_LT(ids.size() * 2, corpus.size());
  EXPECT_EQ(tokenizer.decode(ids), corpus);
}

TEST(BytePairTrainer, NeitherThreadsNorTheOrderOfTextsMatter) {
  const std::string corpus = vectors()["training"]["corpus"];
  std::string book;
  while (book.size() < 3'000'000) book += corpus + "\n";
  const auto config = TrainerConfig{}.with_vocabulary_size(700);
  const int before = num_threads();
  set_num_threads(1);
  BytePairTrainer one(config);
  one.add(book);
  one.add("another text");
  set_num_threads(4);
  BytePairTrainer four(config);
  four.add("another text");
  four.add(book);
  set_num_threads(before);
  EXPECT_EQ(one.word_count(), four.word_count());
  EXPECT_EQ(merges_of(one.train()), merges_of(four.train()));
}

TEST(BytePairTrainer, StopsWithoutPairsAndTellsHowFarItIs) {
  BytePairTrainer trainer(TrainerConfig{}.with_vocabulary_size(300).with_special_tokens({}));
  EXPECT_EQ(trainer.train().vocabulary_size(), 256);
  trainer.add("abab abab");
  std::vector<std::int64_t> done;
  const auto tokenizer = trainer.train([&](std::int64_t n, std::int64_t total) {
    done.push_back(n);
    EXPECT_EQ(total, 44);
  });
  EXPECT_EQ(tokenizer.vocabulary_size(), 258);
  EXPECT_EQ(done, (std::vector<std::int64_t>{1, 2}));
}

TEST(BytePairTrainer, RefusesBadSettings) {
  expect_error<ValueError>([] { BytePairTrainer(TrainerConfig{}.with_vocabulary_size(256)); },
                           {"vocabulary_size 256", "257 to"});
  expect_error<ValueError>([] { BytePairTrainer(TrainerConfig{}.with_least_count(0)); }, {"least_count 0"});
  expect_error<ValueError>([] { train("x", TrainerConfig{}.with_special_tokens({"a"})); },
                           {"\"a\"", "token of the vocabulary already"});
}

}  // namespace
}  // namespace ferrite::text
