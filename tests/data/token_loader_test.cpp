// The token loader: every window once over all ranks, in an order fixed by seed and epoch, resumed exactly.
#include "ferrite/data/token_loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ferrite/data/prefetch.hpp"
#include "io/io_test.hpp"

namespace ferrite::data {
namespace {

using testing::expect_equal;
using testing::expect_error;
using testing::ScratchFolder;
using testing::spill;

using Ids = std::vector<std::int32_t>;

/// Three files, of 41, 24 and 30 tokens, in which every token is different: file * 1000 + its number.
struct TokenLoading : ::testing::Test {
  ScratchFolder folder;
  std::vector<std::filesystem::path> files;
  static constexpr std::int64_t length = 4;
  static constexpr std::int64_t windows = 10 + 5 + 7;  // (n - 1) / 4 of each file

  TokenLoading() {
    const int sizes[] = {41, 24, 30};
    for (int file = 0; file < 3; ++file) {
      Ids ids;
      for (int i = 0; i < sizes[file]; ++i) ids.push_back(file * 1000 + i);
      files.push_back(folder / ("shard_" + std::to_string(file) + ".bin"));
      write(files.back(), ids);
    }
  }
  static void write(const std::filesystem::path& path, const Ids& ids) {
    TokenFileWriter out(path, DType::u16);
    out.write(ids);
    out.commit();
  }
  static TokenLoaderConfig config() { return TokenLoaderConfig{}.with_batch(3, length).with_seed(5); }
};

/// The first tokens of the windows of an epoch, which name the windows; all else is checked here.
Ids epoch(TokenLoader& loader) {
  Ids firsts;
  const auto rows = static_cast<std::size_t>(loader.config().batch_size);
  const auto length = static_cast<std::size_t>(loader.config().length);
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const HostBatch batch = loader.next();
    EXPECT_EQ(batch.x.shape(), (Shape{loader.config().batch_size, loader.config().length}));
    EXPECT_EQ(batch.y.shape(), batch.x.shape());
    const auto x = batch.x.as<std::int32_t>(), y = batch.y.as<std::int32_t>();
    for (std::size_t row = 0; row < rows; ++row) {
      firsts.push_back(x[row * length]);
      for (std::size_t t = 0; t < length; ++t) {
        EXPECT_EQ(x[row * length + t], firsts.back() + static_cast<std::int32_t>(t));
        EXPECT_EQ(y[row * length + t], firsts.back() + static_cast<std::int32_t>(t) + 1);
      }
    }
  }
  return firsts;
}

Ids sorted(Ids ids) {
  std::ranges::sort(ids);
  return ids;
}

/// The windows of all files, by their first tokens.
Ids all_windows() {
  Ids all;
  const int counts[] = {10, 5, 7};
  for (int file = 0; file < 3; ++file)
    for (int w = 0; w < counts[file]; ++w) all.push_back(file * 1000 + 4 * w);
  return all;
}

TEST_F(TokenLoading, AnEpochShowsEveryWindowOnceInAnOrderOfItsOwn) {
  TokenLoader loader(files, config().with_batch(2, length));
  EXPECT_EQ(loader.windows(), windows);
  EXPECT_EQ(loader.tokens(), 95);
  EXPECT_EQ(loader.batches_per_epoch(), 11);
  std::set<Ids> orders;
  std::set<int> first_files;
  for (int e = 0; e < 8; ++e) {
    const Ids order = epoch(loader);
    EXPECT_EQ(loader.position(), (LoaderPosition{e + 1, 0}));
    EXPECT_EQ(sorted(order), all_windows());
    EXPECT_NE(order, all_windows());
    orders.insert(order);
    first_files.insert(order[0] / 1000);
  }
  EXPECT_EQ(orders.size(), 8u);
  EXPECT_EQ(first_files.size(), 3u);  // files are shuffled too
}

TEST_F(TokenLoading, OneFileIsReadAfterTheOther) {
  TokenLoader loader(files, config().with_batch(1, length));
  for (int e = 0; e < 4; ++e) {
    const Ids order = epoch(loader);
    int changes = 0;
    for (std::size_t i = 1; i < order.size(); ++i) changes += order[i] / 1000 != order[i - 1] / 1000;
    EXPECT_EQ(changes, 2);
  }
}

TEST_F(TokenLoading, RanksShareEveryEpochWithoutACommonWindow) {
  for (const std::int64_t ranks : {2, 3, 5}) {
    const auto whole = config().with_batch(1, length);
    TokenLoader alone(files, whole);
    std::vector<TokenLoader> loaders;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      loaders.emplace_back(files, whole.with_batch(2, length).with_rank(rank, ranks));
    for (int e = 0; e < 3; ++e) {
      const Ids order = epoch(alone);
      std::vector<Ids> parts;
      for (TokenLoader& loader : loaders) parts.push_back(epoch(loader));
      const auto used = static_cast<std::size_t>(windows / (2 * ranks) * (2 * ranks));
      Ids joined(used);
      for (std::size_t i = 0; i < used; ++i)
        joined[i] = parts[i % static_cast<std::size_t>(ranks)].at(i / static_cast<std::size_t>(ranks));
      EXPECT_EQ(joined, Ids(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(used)));
      for (const Ids& part : parts) EXPECT_EQ(part.size() * static_cast<std::size_t>(ranks), used);
    }
    for (const TokenLoader& loader : loaders) EXPECT_EQ(loader.describe(), loaders[0].describe());
  }
}

TEST_F(TokenLoading, WhatFillsNoBatchIsDroppedAndDiffersByEpoch) {
  TokenLoader loader(files, config().with_batch(5, length));  // 22 windows: 4 batches, and 2 windows
  EXPECT_EQ(loader.batches_per_epoch(), 4);
  std::set<Ids> kept;
  for (int e = 0; e < 6; ++e) {
    const Ids order = sorted(epoch(loader));
    EXPECT_EQ(order.size(), 20u);
    EXPECT_EQ(std::ranges::adjacent_find(order), order.end());
    kept.insert(order);
  }
  EXPECT_GT(kept.size(), 1u);
}

TEST_F(TokenLoading, TheOrderDependsOnSeedAndEpochOnly) {
  const auto orders = [&](std::int64_t batch, std::uint64_t seed) {
    TokenLoader loader(files, config().with_batch(batch, length).with_seed(seed));
    Ids first = epoch(loader);
    return std::pair(first, epoch(loader));
  };
  EXPECT_EQ(orders(2, 5), orders(2, 5));
  EXPECT_EQ(orders(2, 5), orders(1, 5));
  EXPECT_NE(orders(2, 5).first, orders(2, 6).first);
}

TEST_F(TokenLoading, WithoutAShuffleTheOrderIsThatOfTheFiles) {
  TokenLoader loader(files, config().with_batch(2, length).with_shuffle(false));
  EXPECT_EQ(epoch(loader), all_windows());
  EXPECT_EQ(epoch(loader), all_windows());
  TokenLoader pattern((folder / "shard_*.bin").string(), config().with_batch(2, length).with_shuffle(false));
  EXPECT_EQ(epoch(pattern), all_windows());
  TokenLoader reversed({files[2], files[1]}, config().with_batch(2, length).with_shuffle(false));
  EXPECT_EQ(epoch(reversed)[0], 2000);
}

TEST_F(TokenLoading, ResumesAtEveryBatchBitForBit) {
  TokenLoader loader(files, config().with_rank(1, 2));
  const std::int64_t count = 3 * loader.batches_per_epoch() + 1;
  std::vector<LoaderPosition> positions;
  std::vector<HostBatch> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    positions.push_back(loader.position());
    batches.push_back(loader.next());
  }
  for (std::size_t start = 0; start < batches.size(); ++start) {
    TokenLoader fresh(files, config().with_rank(1, 2));
    fresh.seek(positions[start]);
    loader.seek(positions[start]);  // and one that has seen everything
    for (std::size_t i = start; i < batches.size(); ++i) {
      const HostBatch a = fresh.next(), b = loader.next();
      expect_equal(a.x, batches[i].x);
      expect_equal(a.y, batches[i].y);
      expect_equal(b.x, batches[i].x);
    }
  }
  for (std::size_t i = batches.size(); i-- > 0;) {
    loader.seek(positions[i]);
    expect_equal(loader.next().x, batches[i].x);
  }
  expect_error<ValueError>([&] { loader.seek({0, 9}); }, {"[token loader] epoch 0, batch 9", "0 to "});
  expect_error<ValueError>([&] { loader.seek({-1, 0}); }, {"epoch -1"});
}

TEST_F(TokenLoading, AnotherNumberOfRanksGoesOnWhereTheyStopped) {
  const auto small = config().with_batch(1, length);
  TokenLoader one(files, small);
  std::vector<HostBatch> all;
  for (std::int64_t i = 0; i < one.batches_per_epoch(); ++i) all.push_back(one.next());
  for (const std::int64_t from : {0, 2, 6}) {
    one.seek({1, from});
    std::vector<TokenLoader> ranks;
    for (std::int64_t rank = 0; rank < 2; ++rank)
      ranks.emplace_back(files, small.with_rank(rank, 2)).seek(one.position());
    for (int i = 0; i < 2; ++i) {
      for (TokenLoader& rank : ranks) expect_equal(rank.next().x, one.next().x);
      EXPECT_EQ(ranks[0].position(), one.position());
      EXPECT_EQ(ranks[1].position(), one.position());
    }
  }
  TokenLoader two(files, small.with_rank(1, 2));
  two.seek({0, 3});  // in the middle of a step of two ranks
  EXPECT_EQ(two.position(), (LoaderPosition{0, 4}));
  two.seek({0, one.batches_per_epoch() - 1});
  EXPECT_EQ(two.position().batch % 2, 0);
}

TEST_F(TokenLoading, APrefetchGivesTheSameBatchesAndResumes) {
  TokenLoader plain(files, config()), loader(files, config());
  std::vector<HostBatch> expected;
  for (int i = 0; i < 20; ++i) expected.push_back(plain.next());
  LoaderPosition middle;
  {
    Prefetch ahead(loader, 3);
    EXPECT_EQ(ahead.describe(), plain.describe());
    for (std::size_t i = 0; i < 20; ++i) {
      if (i == 9) middle = ahead.position();
      expect_equal(ahead.pull()->x, expected[i].x);
    }
    ahead.seek(middle);
    expect_equal(ahead.pull()->y, expected[9].y);
  }
  expect_equal(loader.next().x, expected[10].x);
}

TEST_F(TokenLoading, TheDescriptionChangesWithWhatChangesTheOrder) {
  std::set<std::string> seen{TokenLoader(files, config()).describe()};
  const auto is_new = [&](const TokenLoader& loader) { return seen.insert(loader.describe()).second; };
  EXPECT_TRUE(is_new(TokenLoader(files, config().with_seed(6))));
  EXPECT_TRUE(is_new(TokenLoader(files, config().with_batch(2, length))));
  EXPECT_TRUE(is_new(TokenLoader(files, config().with_batch(3, length - 1))));
  EXPECT_FALSE(is_new(TokenLoader(files, config().with_rank(0, 2))));  // may go on where one rank was
  EXPECT_TRUE(is_new(TokenLoader(files, config().with_shuffle(false))));
  EXPECT_TRUE(is_new(TokenLoader({files[1], files[0], files[2]}, config())));
  EXPECT_FALSE(is_new(TokenLoader(files, config().with_vocab(3000))));
  write(files[0], Ids(41, 7));
  write(files[1], Ids(24, 7));
  EXPECT_TRUE(is_new(TokenLoader({files[0], files[1]}, config())));
  EXPECT_TRUE(is_new(TokenLoader({files[1], files[0]}, config())));
}

TEST_F(TokenLoading, AnIdOutsideTheVocabularyIsNamed) {
  Ids ids(41, 7);
  ids[30] = 600;
  write(files[0], ids);
  TokenLoader loader({files[0]}, config().with_batch(1, length).with_shuffle(false).with_vocab(600));
  for (int i = 0; i < 7; ++i) loader.next();
  for (int again = 0; again < 2; ++again)
    expect_error<ValueError>([&] { loader.next(); },
                             {"shard_0.bin, token 30: id 600", "ids 0 to 599", "another tokenizer"});
  EXPECT_EQ(loader.position(), (LoaderPosition{0, 7}));
  expect_error<ValueError>([&] { TokenLoader(files[1], config().with_vocab(1000)); },
                           {"shard_1.bin, token 0"});
}

TEST_F(TokenLoading, ReadsBareTokensIfTheDtypeIsNamed) {
  std::string bytes;
  for (std::uint16_t i = 0; i < 9; ++i) bytes += testing::le(i);
  spill(folder / "bare.bin", bytes);
  TokenLoader loader(folder / "bare.bin", config().with_batch(2, length).with_dtype(DType::u16));
  EXPECT_EQ(sorted(epoch(loader)), (Ids{0, 4}));
  expect_error<ParseError>([&] { TokenLoader(folder / "bare.bin", config()); }, {"with_dtype"});
}

TEST_F(TokenLoading, SaysWhyItCannotStart) {
  const auto refused = [](auto make, std::initializer_list<std::string_view> parts) {
    expect_error<ValueError>(make, parts);
  };
  const std::vector<std::filesystem::path> none;
  refused([&] { TokenLoader(none, config()); }, {"no files"});
  refused([&] { TokenLoader((folder / "no_*.bin").string(), config()); }, {"no file matches '"});
  refused([&] { TokenLoader(files, config().with_batch(0, 4)); }, {"batch of 0"});
  refused([&] { TokenLoader(files, config().with_batch(3, 0)); }, {"windows of 0"});
  refused([&] { TokenLoader(files, config().with_vocab(0)); }, {"vocabulary 0"});
  refused([&] { TokenLoader(files, config().with_rank(2, 2)); }, {"rank 2", "0 to 1"});
  refused([&] { TokenLoader(files, config().with_rank(0, 0)); }, {"ranks 0"});
  refused([&] { TokenLoader(files, config().with_batch(12, 4).with_rank(0, 2)); },
          {"22 windows of 5 tokens", "a batch of 12 on each of 2 ranks", "smaller batches"});
  refused([&] { TokenLoader(files, config().with_batch(1, 24)); },
          {"shard_1.bin: 24 tokens, but a window has 25", "leave the file out"});
  TokenLoader just_fits(files[1], config().with_batch(1, 23));
  EXPECT_EQ(just_fits.batches_per_epoch(), 1);
  write(files[1], {});
  refused([&] { TokenLoader(files, config()); }, {"shard_1.bin: 0 tokens"});
  spill(files[1], "");
  expect_error<ParseError>([&] { TokenLoader(files, config()); }, {"shard_1.bin", "the file is empty"});
}

}  // namespace
}  // namespace ferrite::data
