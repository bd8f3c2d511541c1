// The loader: every row once per epoch, in an order fixed by seed and epoch.
#include "ferrite/data/loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ferrite/stacks.hpp"
#include "io/io_test.hpp"

namespace ferrite::data {
namespace {

using testing::expect_error;

Dataset numbered(std::int64_t rows) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows));
  std::iota(values.begin(), values.end(), std::int64_t{0});
  const HostTensor tensor = HostTensor::from(std::span<const std::int64_t>(values), {rows});
  return {tensor, tensor};
}

std::vector<std::int64_t> epoch(DataLoader& loader) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const HostBatch batch = loader.next();
    const auto y = batch.y.as<std::int64_t>();
    rows.insert(rows.end(), y.begin(), y.end());
  }
  return rows;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> rows) {
  std::ranges::sort(rows);
  return rows;
}

TEST(DataLoader, AnEpochShowsEveryRowOnce) {
  DataLoader loader(numbered(10), LoaderConfig{}.with_batch_size(4).with_seed(3));
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  const auto first = epoch(loader), second = epoch(loader);
  EXPECT_EQ(sorted(first), sorted(second));
  EXPECT_EQ(sorted(first)[9], 9);
  EXPECT_EQ(first.size(), 10u);
  EXPECT_NE(first, second);
}

TEST(DataLoader, TheOrderDependsOnSeedAndEpochOnly) {
  const auto orders = [](std::int64_t batch_size, std::uint64_t seed) {
    DataLoader loader(numbered(10), LoaderConfig{}.with_batch_size(batch_size).with_seed(seed));
    return std::pair(epoch(loader), epoch(loader));
  };
  EXPECT_EQ(orders(4, 3), orders(4, 3));
  EXPECT_EQ(orders(4, 3), orders(5, 3));
  EXPECT_NE(orders(4, 3).first, orders(4, 4).first);
}

TEST(DataLoader, SequentialOrderIsTheDatasOwn) {
  DataLoader loader(numbered(5), LoaderConfig{}.with_batch_size(2).with_order(Order::sequential));
  EXPECT_EQ(epoch(loader), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(DataLoader, ARemainderIsKeptOrDropped) {
  DataLoader keep(numbered(10), LoaderConfig{}.with_batch_size(4));
  EXPECT_EQ((keep.next(), keep.next(), keep.next().size()), 2);
  DataLoader drop(numbered(10), LoaderConfig{}.with_batch_size(4).with_remainder(Remainder::drop));
  EXPECT_EQ(drop.batches_per_epoch(), 2);
  EXPECT_EQ(epoch(drop).size(), 8u);
  EXPECT_EQ(drop.position(), (LoaderPosition{1, 0}));
}

TEST(DataLoader, APositionCanBeSavedAndRestored) {
  const LoaderConfig config = LoaderConfig{}.with_batch_size(3).with_seed(8);
  DataLoader original(numbered(10), config), restored(numbered(10), config);
  for (int i = 0; i < 6; ++i) original.next();
  EXPECT_EQ(original.position(), (LoaderPosition{1, 2}));
  restored.seek(original.position());
  for (int i = 0; i < 9; ++i) {
    const HostBatch a = original.next(), b = restored.next();
    EXPECT_TRUE(std::ranges::equal(a.y.as<std::int64_t>(), b.y.as<std::int64_t>()));
  }
  expect_error<ValueError>([&] { restored.seek({0, 4}); }, {"[loader] epoch 0, batch 4", "0 to 3"});
}

TEST(DataLoader, RanksShareTheRowsAndGoOnInAnotherNumber) {
  const LoaderConfig config = LoaderConfig{}.with_batch_size(2).with_seed(4);
  DataLoader one(numbered(13), config), first(numbered(13), config.with_rank(0, 2)),
      second(numbered(13), config.with_rank(1, 2));
  EXPECT_EQ(first.batches_per_epoch(), 3);  // one row is left out
  EXPECT_EQ(first.describe(), one.describe());
  for (int i = 0; i < 3; ++i) {
    for (DataLoader* rank : {&first, &second}) {
      const HostBatch a = rank->next(), b = one.next();
      EXPECT_TRUE(std::ranges::equal(a.y.as<std::int64_t>(), b.y.as<std::int64_t>()));
    }
    if (i < 2) {
      EXPECT_EQ(second.position(), one.position());
    }
  }
  EXPECT_EQ(second.position(), (LoaderPosition{1, 0}));
  second.seek({0, 3});
  EXPECT_EQ(second.position(), (LoaderPosition{0, 4}));
  for (const std::int64_t late : {5, 6}) {  // before the last full batch, and before the one of one row
    second.seek({0, late});
    EXPECT_EQ(second.position(), (LoaderPosition{1, 0}));
  }
  expect_error<ValueError>([&] { DataLoader(numbered(13), config.with_rank(2, 2)); }, {"rank 2 of 2"});
  expect_error<ValueError>([&] { DataLoader(numbered(3), config.with_rank(0, 2)); }, {"on 2 ranks"});
}

TEST(DataLoader, AnEpochIsARange) {
  Reference backend;
  DataLoader loader(numbered(10), LoaderConfig{}.with_batch_size(4));
  loader.next();
  std::int64_t rows = 0;
  for (const auto& [x, y] : loader.epoch(backend)) rows += y.numel() + 0 * x.numel();
  EXPECT_EQ(rows, 6);  // what was left
  EXPECT_EQ(loader.position(), (LoaderPosition{1, 0}));
}

TEST(DataLoader, SizesThatGiveNoBatchAreRefused) {
  expect_error<ValueError>([] { DataLoader(numbered(3), LoaderConfig{}.with_batch_size(0)); },
                           {"batch size 0"});
  expect_error<ValueError>([] { DataLoader(numbered(0)); }, {"[loader] 0 rows"});
  expect_error<ValueError>(
      [] { DataLoader(numbered(3), LoaderConfig{}.with_batch_size(4).with_remainder(Remainder::drop)); },
      {"[loader] 3 rows in batches of 4"});
}

}  // namespace
}  // namespace ferrite::data
