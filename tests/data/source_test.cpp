// Sources of batches other than the loader: functions, and the thread that runs ahead.
#include "ferrite/data/source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "ferrite/data/loader.hpp"
#include "ferrite/data/prefetch.hpp"
#include "io/io_test.hpp"

namespace ferrite::data {
namespace {

using testing::expect_error;

HostBatch batch_of(std::int64_t value) {
  const HostTensor tensor = HostTensor::from(std::span<const std::int64_t>(&value, 1), {1});
  return {tensor, tensor};
}

Generated numbers(std::int64_t end, std::int64_t per_epoch = 0) {
  return Generated(
      "numbers", [end](std::int64_t n) { return n < end ? std::optional(batch_of(n)) : std::nullopt; },
      per_epoch);
}

std::int64_t number(const std::optional<HostBatch>& batch) { return batch->y.as<std::int64_t>()[0]; }

/// The numbers a source gives, up to `most` of them.
std::vector<std::int64_t> taken(BatchSource& source, int most = 1000) {
  std::vector<std::int64_t> result;
  while (most-- > 0) {
    const auto batch = source.pull();
    if (!batch) break;
    result.push_back(number(batch));
  }
  return result;
}

TEST(Generated, GivesBatchesByTheirNumber) {
  Generated source = numbers(100, 3);
  EXPECT_EQ(taken(source, 4), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(source.position(), (LoaderPosition{1, 1}));
  source.seek({5, 2});
  EXPECT_EQ(number(source.pull()), 17);
  expect_error<ValueError>([&] { source.seek({-1, 0}); }, {"[generated] epoch -1"});
  expect_error<ValueError>([] { Generated("x", nullptr); }, {"no function"});
}

TEST(Prefetch, GivesTheBatchesOfItsSourceInOrder) {
  Generated source = numbers(50);
  Prefetch ahead(source, 3);
  EXPECT_EQ(ahead.describe(), "numbers");
  std::vector<std::int64_t> all(50);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(taken(ahead), all);
  EXPECT_FALSE(ahead.pull());  // and stays at the end
  expect_error<ValueError>([&] { Prefetch(source, 0); }, {"[prefetch] depth 0"});
}

TEST(Prefetch, AShortBatchIsNotTheSizeOfAll) {
  const auto rows = [](std::int64_t n) -> std::optional<HostBatch> {
    const std::vector<float> x(n == 2 ? 1 : 4);
    const HostTensor tensor =
        HostTensor::from(std::span<const float>(x), {static_cast<std::int64_t>(x.size())});
    return HostBatch{tensor, tensor};
  };
  Generated source("rows", rows, 3);
  Prefetch ahead(source);
  for (int i = 0; i < 3; ++i) ahead.pull();
  EXPECT_EQ(ahead.batch_size(), 4);
  Generated alone("rows", rows, 3);
  for (int i = 0; i < 3; ++i) alone.pull();
  EXPECT_EQ(alone.batch_size(), 4);
}

TEST(Prefetch, RunsAheadButItsPositionIsThatOfTheBatchesHandedOut) {
  std::atomic<std::int64_t> made = 0;
  Generated source("counted", [&](std::int64_t n) {
    made = n + 1;
    return std::optional(batch_of(n));
  });
  {
    Prefetch ahead(source, 4);
    EXPECT_EQ(number(ahead.pull()), 0);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (made < 5 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(made, 5);  // the one handed out and four ahead
    EXPECT_EQ(ahead.position(), (LoaderPosition{0, 1}));
    EXPECT_EQ(number(ahead.pull()), 1);
    ahead.seek({0, 40});
    EXPECT_EQ(number(ahead.pull()), 40);
    EXPECT_EQ(ahead.position(), (LoaderPosition{0, 41}));
    expect_error<ValueError>([&] { ahead.seek({1, 0}); }, {"no batch has this place"});
    EXPECT_EQ(number(ahead.pull()), 41);  // a seek that fails loses nothing
  }
  EXPECT_EQ(source.position(), (LoaderPosition{0, 42}));  // put back where the last user stood
}

TEST(Prefetch, AnErrorOfTheSourceComesInItsPlace) {
  Generated source("fails", [](std::int64_t n) {
    if (n == 2) throw ValueError("[mine] bad file");
    return std::optional(batch_of(n));
  });
  Prefetch ahead(source);
  EXPECT_EQ(number(ahead.pull()), 0);
  EXPECT_EQ(number(ahead.pull()), 1);
  expect_error<ValueError>([&] { ahead.pull(); }, {"[mine] bad file"});
}

TEST(BatchSource, OneThatCannotSeekSaysSo) {
  struct Stream final : BatchSource {
    std::int64_t next = 0;
    std::optional<HostBatch> pull() override { return batch_of(next++); }
    std::string describe() const override { return "a stream"; }
    LoaderPosition position() const override { return {0, next}; }
  } stream;
  EXPECT_FALSE(stream.can_seek());
  expect_error<ValueError>([&] { stream.seek({0, 3}); }, {"a stream cannot seek"});
  Prefetch ahead(stream);
  EXPECT_EQ(number(ahead.pull()), 0);
  expect_error<ValueError>([&] { ahead.seek({0, 3}); }, {"a stream cannot seek"});
  EXPECT_EQ(number(ahead.pull()), 1);  // what was made ahead is not lost
}

TEST(Prefetch, ALoaderKeepsItsOrder) {
  std::vector<std::int64_t> values(20);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
  const HostTensor rows = HostTensor::from(std::span<const std::int64_t>(values), {20});
  const auto config = LoaderConfig{}.with_batch_size(1).with_seed(4);
  DataLoader plain({rows, rows}, config), loader({rows, rows}, config);
  Prefetch ahead(loader);
  EXPECT_EQ(taken(ahead, 60), taken(plain, 60));
  EXPECT_EQ(ahead.position(), plain.position());
}

}  // namespace
}  // namespace ferrite::data
