// The CUDA memory pool on the host: segments come from a fake device, so its algorithm is tested everywhere.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "backend_cuda/fake_device.hpp"

namespace ferrite::cuda {
namespace {

TEST_F(PoolTest, BuffersKnowTheirSizeAndDevice) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{512}, 1 * MiB, 3 * GiB + 1}) {
    const auto buffer = pool->allocate(bytes);
    EXPECT_NE(buffer->data(), nullptr);
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(buffer->device(), gpu);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 512, 0u);
  }
}

TEST_F(PoolTest, FreedMemoryIsReusedAtOnce) {
  for (const std::size_t bytes : {1 * KiB, 1 * MiB, 5 * MiB, 100 * MiB}) {
    const void* const first = pool->allocate(bytes)->data();
    const int segments = device->allocations;
    EXPECT_EQ(pool->allocate(bytes)->data(), first);
    EXPECT_EQ(pool->allocate(bytes - 1)->data(), first);
    EXPECT_EQ(device->allocations, segments);
  }
}

TEST_F(PoolTest, SmallRequestsShareSegmentsOfTwoMegabytes) {
  std::vector<std::shared_ptr<Buffer>> live;
  for (int i = 0; i < 4096; ++i) live.push_back(pool->allocate(512));
  EXPECT_EQ(device->allocations, 1);
  EXPECT_EQ(pool->pool_stats().reserved, 2 * MiB);
  live.push_back(pool->allocate(1));
  EXPECT_EQ(device->allocations, 2);
  const auto large = pool->allocate(1 * MiB + 1);  // never from a small segment
  EXPECT_EQ(device->allocations, 3);
  EXPECT_EQ(pool->pool_stats().reserved, 2 * 2 * MiB + 32 * MiB);
}

TEST_F(PoolTest, BlocksAreSplitAndMeltTogetherAgain) {
  auto a = pool->allocate(100 * MiB);
  std::byte* const base = address(a);
  a.reset();
  a = pool->allocate(20 * MiB);
  auto b = pool->allocate(30 * MiB);
  auto c = pool->allocate(50 * MiB);
  EXPECT_EQ(device->allocations, 1);
  EXPECT_EQ(address(a), base);
  EXPECT_EQ(address(b), base + 20 * MiB);
  EXPECT_EQ(address(c), base + 50 * MiB);
  EXPECT_EQ(pool->pool_stats().largest_free, 0u);
  a.reset();
  c.reset();
  EXPECT_EQ(pool->pool_stats().largest_free, 50 * MiB);
  EXPECT_NEAR(pool->pool_stats().fragmentation(), 1 - 50.0 / 70.0, 1e-12);
  b.reset();  // joins both neighbours
  EXPECT_EQ(pool->pool_stats().largest_free, 100 * MiB);
  EXPECT_EQ(pool->pool_stats().fragmentation(), 0.0);
  EXPECT_EQ(address(pool->allocate(100 * MiB)), base);
  EXPECT_EQ(device->allocations, 1);
}

TEST_F(PoolTest, TheBestFitIsTaken) {
  auto large = pool->allocate(200 * MiB), fit = pool->allocate(40 * MiB), other = pool->allocate(60 * MiB);
  const void* const expected = fit->data();
  large.reset();
  fit.reset();
  other.reset();
  EXPECT_EQ(pool->allocate(39 * MiB)->data(), expected);
}

TEST_F(PoolTest, ABlockThatFitsIsNeverMissed) {
  // Many free blocks of one bin that are too small, and one, freed first, that fits.
  restart(2 * GiB);
  const std::size_t bytes = 64 * MiB;  // the bin reaches to 68 MiB
  std::vector<std::shared_ptr<Buffer>> blocks{pool->allocate(bytes + 2 * MiB)};
  const void* const expected = blocks[0]->data();
  for (int i = 0; i < 20; ++i) blocks.push_back(pool->allocate(bytes));
  for (auto& block : blocks) block.reset();
  const int segments = device->allocations;
  EXPECT_EQ(pool->allocate(bytes + 1 * MiB)->data(), expected);
  EXPECT_EQ(device->allocations, segments);
}

TEST_F(PoolTest, TrainingStepsAreFlat) {
  const auto step = [&] {
    std::vector<std::shared_ptr<Buffer>> activations;
    for (std::size_t layer = 1; layer <= 24; ++layer) {
      activations.push_back(pool->allocate(layer % 3 ? 12 * MiB : 48 * MiB));
      const auto scratch = pool->allocate(layer * 100 * KiB);
      activations.push_back(pool->allocate(layer * 7));
    }
    while (!activations.empty()) {
      const auto gradient = pool->allocate(activations.back()->bytes());
      activations.pop_back();
    }
  };
  const auto weights = pool->allocate(500 * MiB);
  step();
  const PoolStats first = pool->pool_stats();
  for (int i = 0; i < 100; ++i) step();
  const PoolStats last = pool->pool_stats();
  EXPECT_EQ(last.in_use, first.in_use);
  EXPECT_EQ(last.peak, first.peak);
  EXPECT_EQ(last.reserved, first.reserved);
  EXPECT_EQ(last.segment_allocations, first.segment_allocations);
}

TEST_F(PoolTest, RandomSizesNeitherOverlapNorFragment) {
  std::mt19937_64 random(7);
  struct Live {
    std::shared_ptr<Buffer> buffer;
    std::size_t bytes;
  };
  std::vector<Live> live;
  std::map<std::byte*, std::size_t> extents;
  std::size_t requested = 0, most_requested = 0, most_reserved = 0;
  double fragmentation = 0;
  for (int i = 0; i < 100000; ++i) {
    if (live.size() < 400 && random() % 2) {
      // From 1 byte to 256 MiB, every order of magnitude alike.
      const std::size_t bytes = (std::size_t{1} << (random() % 28)) + random() % (1 << 20) % 7919;
      const auto buffer = pool->allocate(bytes);
      std::byte* const begin = address(buffer);
      const auto after = extents.lower_bound(begin);
      if (after != extents.end()) {
        ASSERT_LE(begin + bytes, after->first);
      }
      if (after != extents.begin()) {
        ASSERT_LE(std::prev(after)->first + std::prev(after)->second, begin);
      }
      extents[begin] = std::max<std::size_t>(bytes, 1);
      live.push_back({buffer, bytes});
      requested += bytes;
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      requested -= live.back().bytes;
      extents.erase(address(live.back().buffer));
      live.pop_back();
    }
    most_requested = std::max(most_requested, requested);
    if (i % 100 == 0) {
      const PoolStats now = pool->pool_stats();
      ASSERT_EQ(now.live_blocks, live.size());
      ASSERT_GE(now.in_use, requested);
      ASSERT_LE(now.in_use, requested + 512 * live.size());
      most_reserved = std::max(most_reserved, now.reserved);
      fragmentation = std::max(fragmentation, now.fragmentation());
    }
  }
  const double overhead = static_cast<double>(most_reserved) / static_cast<double>(most_requested);
  std::printf("reserved at most %.3f of the most requested; fragmentation at most %.3f, at the end %.3f\n",
              overhead, fragmentation, pool->pool_stats().fragmentation());
  EXPECT_LT(overhead, 1.25);
  EXPECT_LT(fragmentation, 0.97);
  live.clear();
  const PoolStats now = pool->pool_stats();
  EXPECT_EQ(now.in_use, 0u);
  EXPECT_EQ(now.cached, now.reserved);
  pool->release_cache();  // all blocks have melted into whole segments
  EXPECT_EQ(device->used(), 0u);
}

TEST_F(PoolTest, CachedSegmentsAreGivenBackBeforeFailing) {
  restart(100 * MiB);
  auto a = pool->allocate(40 * MiB), b = pool->allocate(40 * MiB);
  a.reset();
  b.reset();
  const auto whole = pool->allocate(90 * MiB);  // fits in neither
  EXPECT_EQ(device->used(), 90 * MiB);
  EXPECT_EQ(device->frees, 2);
}

TEST_F(PoolTest, ANearlyFullDeviceGivesSmallerSegments) {
  restart(20 * MiB);
  const auto buffer = pool->allocate(5 * MiB);  // no room for a shared segment of 32 MiB
  EXPECT_EQ(device->used(), 6 * MiB);
}

TEST_F(PoolTest, SmallRequestsTakeLargeBlocksRatherThanFail) {
  restart(32 * MiB);
  const auto large = pool->allocate(20 * MiB);
  std::vector<std::shared_ptr<Buffer>> live;
  for (int i = 0; i < 12; ++i) live.push_back(pool->allocate(1 * MiB));
  EXPECT_EQ(pool->pool_stats().in_use, 32 * MiB);
  EXPECT_THROW(pool->allocate(1), OutOfMemory);
}

TEST_F(PoolTest, TheLimitHolds) {
  pool->set_limit(64 * MiB);
  EXPECT_EQ(pool->limit(), 64 * MiB);
  auto a = pool->allocate(40 * MiB);
  const std::string text = out_of_memory_text(30 * MiB);
  EXPECT_NE(text.find("limit 64.00 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("FERRITE_CUDA_MEMORY_LIMIT"), std::string::npos) << text;
  a.reset();
  const auto b = pool->allocate(60 * MiB);  // what was cached is given back first
  EXPECT_EQ(device->used(), 60 * MiB);
  pool->set_limit(max_block_bytes);
  EXPECT_NO_THROW(pool->allocate(1 * GiB));
}

TEST_F(PoolTest, MemoryUsedOnAnotherStreamWaitsForIt) {
  int stream = 0;
  streams.busy = {&stream};
  auto buffer = pool->allocate(10 * MiB);
  std::byte* const data = address(buffer);
  Pool::record_use(*buffer, &stream);
  Pool::record_use(*buffer, &stream);
  buffer.reset();
  EXPECT_EQ(pool->pool_stats().in_use, 0u);
  EXPECT_EQ(pool->pool_stats().parked, 10 * MiB);
  EXPECT_NE(address(pool->allocate(10 * MiB)), data);
  streams.busy.clear();
  EXPECT_EQ(address(pool->allocate(10 * MiB)), data);
  EXPECT_EQ(pool->pool_stats().parked, 0u);
  const int polls = streams.polls;
  pool->allocate(10 * MiB);
  EXPECT_EQ(streams.polls, polls);  // nothing is parked: nobody asks
}

TEST_F(PoolTest, EveryStreamMustBeDone) {
  int first = 0, second = 0;
  auto buffer = pool->allocate(10 * MiB);
  std::byte* const data = address(buffer);
  Pool::record_use(*buffer, &first);
  Pool::record_use(*buffer, &second);
  streams.busy = {&second};
  buffer.reset();
  EXPECT_NE(address(pool->allocate(10 * MiB)), data);
  streams.busy = {};
  EXPECT_EQ(address(pool->allocate(10 * MiB)), data);
}

TEST_F(PoolTest, ParkedMemoryIsWaitedForBeforeFailing) {
  restart(100 * MiB);
  int stream = 0;
  streams.busy = {&stream};
  auto buffer = pool->allocate(80 * MiB);
  Pool::record_use(*buffer, &stream);
  buffer.reset();
  EXPECT_NO_THROW(pool->allocate(80 * MiB));
  EXPECT_EQ(streams.waits, 1);
}

TEST_F(PoolTest, OnlyPoolBuffersCanBeRecorded) {
  EXPECT_THROW(Pool::record_use(*host_allocator().allocate(8), nullptr), BackendError);
}

TEST_F(PoolTest, ArenasKeepTheirMemoryToThemselves) {
  PoolHandle arena = Pool::make_arena(*pool);
  auto kept = arena->allocate(3 * MiB);
  const std::byte* const freed = address(arena->allocate(100 * MiB));
  EXPECT_EQ(address(arena->allocate(100 * MiB)), freed);  // reused inside ...
  EXPECT_NE(address(pool->allocate(100 * MiB)), freed);   // ... and not outside,
  arena->release_cache();
  EXPECT_NE(address(pool->allocate(100 * MiB)), freed);  // whatever is asked
  EXPECT_EQ(pool->pool_stats().in_use, 32 * MiB + 100 * MiB);
  arena.reset();
  EXPECT_EQ(pool->pool_stats().in_use, 32 * MiB + 100 * MiB);  // a buffer of it lives
  kept.reset();
  EXPECT_EQ(pool->pool_stats().in_use, 0u);
}

TEST_F(PoolTest, ArenasTakeSegmentsAsTheyAreTold) {
  std::vector<std::size_t> taken;
  const PoolHandle arena = Pool::make_arena(*pool, [&](Pool& parent, std::size_t bytes) {
    EXPECT_EQ(&parent, pool.get());
    taken.push_back(bytes);
    return parent.allocate(bytes);
  });
  for (int round = 0; round < 2; ++round) arena->allocate(100 * MiB);
  EXPECT_EQ(taken, std::vector<std::size_t>{100 * MiB});
}

TEST_F(PoolTest, ArenasObeyTheLimitOfTheirParent) {
  pool->set_limit(64 * MiB);
  const PoolHandle arena = Pool::make_arena(*pool);
  const auto held = arena->allocate(60 * MiB);
  const OpScope scope("conv2d");
  try {
    arena->allocate(60 * MiB);
    FAIL() << "beyond the limit";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(std::string(error.what()).rfind("[conv2d] 60.00 MiB", 0), 0u) << error.what();
  }
}

TEST_F(PoolTest, APoolOutlivesItsHandleWhileBuffersLive) {
  auto buffer = pool->allocate(100);
  pool.reset();
  EXPECT_EQ(device->used(), 2 * MiB);
  buffer.reset();
  EXPECT_EQ(device->used(), 0u);
}

TEST_F(PoolTest, PoisonFillsFreshAndReusedMemory) {
  PoolOptions options;
  options.poison = true;
  restart(64 * MiB, options, true);
  const auto poisoned = [](const std::shared_ptr<Buffer>& buffer) {
    const auto* bytes = static_cast<const unsigned char*>(buffer->data());
    return std::all_of(bytes, bytes + buffer->bytes(), [](unsigned char byte) { return byte == 0xff; });
  };
  for (int round = 0; round < 2; ++round) {
    const auto buffer = pool->allocate(5000);
    EXPECT_TRUE(poisoned(buffer));
    std::memset(buffer->data(), 0, 5000);
  }
  const PoolHandle arena = Pool::make_arena(*pool);
  for (int round = 0; round < 2; ++round) {
    const auto buffer = arena->allocate(5000);
    EXPECT_TRUE(poisoned(buffer));
    std::memset(buffer->data(), 0, 5000);
  }
}

TEST_F(PoolTest, ThreadsShareIt) {
  restart(1 * GiB, {}, true);
  std::vector<std::thread> threads;
  for (unsigned char t = 1; t <= 4; ++t) {
    threads.emplace_back([this, t] {
      std::vector<std::shared_ptr<Buffer>> live;
      for (std::size_t i = 0; i < 3000; ++i) {
        const std::size_t bytes = 1 + (i * 7919 * t) % (i % 16 ? 9000 : 2 * MiB);
        live.push_back(pool->allocate(bytes));
        auto* data = static_cast<unsigned char*>(live.back()->data());
        data[0] = data[bytes - 1] = t;
        if (live.size() < 20) continue;
        const auto& oldest = live.front();
        const auto* seen = static_cast<unsigned char*>(oldest->data());
        ASSERT_EQ(seen[0], t);
        ASSERT_EQ(seen[oldest->bytes() - 1], t);
        live.erase(live.begin());
        if (i % 500 == 0) pool->release_cache();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const PoolStats now = pool->pool_stats();
  EXPECT_EQ(now.in_use, 0u);
  EXPECT_EQ(now.live_blocks, 0u);
  EXPECT_EQ(now.allocations, 12000u);
}

// Not a benchmark: it fails when a search or a system call has crept into the hot path.
TEST_F(PoolTest, CachedRequestsAreFast) {
  std::vector<std::shared_ptr<Buffer>> live;
  for (std::size_t i = 0; i < 200; ++i) live.push_back(pool->allocate(i * 1000));
  for (std::size_t i = 0; i < 200; i += 2) live[i].reset();
  constexpr int rounds = 200000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) pool->allocate(static_cast<std::size_t>(i % 64) * 512);
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  std::printf("cached allocate and free: %.0f ns\n", time.count() / rounds);
  EXPECT_LT(time.count() / rounds,
            3000);  // 0.1 us unloaded; sanitizers and busy machines take ten times that
}

}  // namespace
}  // namespace ferrite::cuda
