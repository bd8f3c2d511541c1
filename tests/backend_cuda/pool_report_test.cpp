// What the CUDA memory pool reports: statistics, messages, logs, and the environment it reads; on the host.
#include <nlohmann/json.hpp>

#include "backend_cuda/fake_device.hpp"

namespace ferrite::cuda {
namespace {

TEST_F(PoolTest, StatisticsAreExact) {
  auto a = pool->allocate(100), b = pool->allocate(600);
  PoolStats now = pool->pool_stats();
  EXPECT_EQ(now.in_use, 512u + 1024u);
  EXPECT_EQ(now.reserved, 2 * MiB);
  EXPECT_EQ(now.cached, now.reserved - now.in_use);
  EXPECT_EQ(now.largest_free, now.cached);
  EXPECT_EQ(now.live_blocks, 2u);
  b.reset();
  now = pool->pool_stats();
  EXPECT_EQ(now.in_use, 512u);
  EXPECT_EQ(now.peak, 1536u);
  EXPECT_EQ(now.allocations, 2u);
  EXPECT_EQ(now.segments, 1u);
  const MemoryStats common = static_cast<Allocator&>(*pool).stats();
  EXPECT_EQ(common.in_use, now.in_use);
  EXPECT_EQ(common.cached, now.cached);
  EXPECT_EQ(common.peak, now.peak);
  EXPECT_EQ(common.allocations, now.allocations);
  pool->reset_peak();
  EXPECT_EQ(pool->pool_stats().peak, 512u);
  pool->release_cache();  // the segment is in use
  EXPECT_EQ(pool->pool_stats().reserved, 2 * MiB);
  a.reset();
  pool->release_cache();
  now = pool->pool_stats();
  EXPECT_EQ(now.reserved, 0u);
  EXPECT_EQ(now.segments, 0u);
  EXPECT_EQ(now.fragmentation(), 0.0);
  EXPECT_EQ(device->used(), 0u);
}

TEST_F(PoolTest, OutOfMemorySaysWhatTheUserNeeds) {
  restart(1 * GiB);
  const OpScope outer("layer_norm");
  const auto held = pool->allocate(700 * MiB);
  std::string text;
  {
    const OpScope inner("matmul");
    EXPECT_EQ(OpScope::current(), "matmul");
    text = out_of_memory_text(400 * MiB);
  }
  EXPECT_EQ(OpScope::current(), "layer_norm");
  EXPECT_EQ(
      text,
      "[matmul] 400.00 MiB (419430400 bytes) on cuda:0: out of memory; 700.00 MiB in use by 1 blocks (most "
      "by "
      "layer_norm: 700.00 MiB), 0 B cached (largest piece 0 B), 324.00 MiB free on the device. Use smaller "
      "batches, bf16 or checkpoint(), or drop tensors that are no longer needed");
  EXPECT_NO_THROW(pool->allocate(300 * MiB));  // the pool works on
  EXPECT_EQ(pool->pool_stats().live_blocks, 1u);
}

TEST_F(PoolTest, AbsurdSizesAreOutOfMemory) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 511, max_block_bytes + 1, max_block_bytes}) {
    EXPECT_THROW(pool->allocate(bytes), OutOfMemory);
  }
  EXPECT_NE(out_of_memory_text(SIZE_MAX).find("at most 2^47 bytes"), std::string::npos);
  EXPECT_EQ(pool->pool_stats().reserved, 0u);
}

TEST_F(PoolTest, TheEventLogIsBoundedAndInOrder) {
  pool->allocate(1);  // before the log
  EXPECT_TRUE(pool->events().empty());
  pool->log_events(4);
  {
    const OpScope scope("softmax");
    pool->allocate(20 * MiB);
  }
  auto events = pool->events();
  ASSERT_EQ(events.size(), 3u);
  const auto expect = [&](std::size_t i, PoolEvent::Kind kind, std::size_t bytes) {
    EXPECT_EQ(events[i].kind, kind) << i;
    EXPECT_EQ(events[i].bytes, bytes) << i;
    EXPECT_EQ(events[i].op, "softmax") << i;
    if (i > 0) {
      EXPECT_GE(events[i].time, events[i - 1].time);
    }
  };
  expect(0, PoolEvent::Kind::segment, 20 * MiB);
  expect(1, PoolEvent::Kind::allocate, 20 * MiB);
  expect(2, PoolEvent::Kind::free, 20 * MiB);
  pool->set_limit(1 * MiB);
  EXPECT_THROW(pool->allocate(40 * MiB), OutOfMemory);
  events = pool->events();
  ASSERT_EQ(events.size(), 4u);  // the first is forgotten
  expect(0, PoolEvent::Kind::free, 20 * MiB);
  EXPECT_EQ(events[1].kind, PoolEvent::Kind::segment_release);
  EXPECT_EQ(events[2].kind, PoolEvent::Kind::segment_release);
  EXPECT_EQ(events[3].kind, PoolEvent::Kind::out_of_memory);
  EXPECT_EQ(to_string(events[3].kind), "out_of_memory");
  pool->log_events(0);
  EXPECT_TRUE(pool->events().empty());
}

TEST_F(PoolTest, ReportsNameTheOpsThatHoldMost) {
  const OpScope outer("attention");
  const auto a = pool->allocate(3 * MiB), b = pool->allocate(5 * MiB);
  const OpScope inner("gelu");
  const auto c = pool->allocate(20 * MiB);
  const auto ops = pool->live_by_op();
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].op, "gelu");
  EXPECT_EQ(ops[1].op, "attention");
  EXPECT_EQ(ops[1].bytes, 8 * MiB);
  EXPECT_EQ(ops[1].blocks, 2u);
  EXPECT_EQ(ops[1].largest, 5 * MiB);
  const std::string text = pool->memory_report();
  for (const char* part : {"cuda:0", "in use", "28.00 MiB", "fragmentation", "attention", "gelu"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  const auto json = nlohmann::json::parse(pool->memory_report_json());
  EXPECT_EQ(json["in_use"], 28 * MiB);
  EXPECT_EQ(json["live_by_op"][1]["op"], "attention");
  EXPECT_EQ(json["live_by_op"][1]["blocks"], 2);
}

TEST(PoolSizes, AreReadWithSuffixes) {
  EXPECT_EQ(parse_bytes("LIMIT", "1000"), 1000u);
  EXPECT_EQ(parse_bytes("LIMIT", "4K"), 4 * KiB);
  EXPECT_EQ(parse_bytes("LIMIT", "512M"), 512 * MiB);
  EXPECT_EQ(parse_bytes("LIMIT", "512m"), 512 * MiB);
  EXPECT_EQ(parse_bytes("LIMIT", "8GiB"), 8 * GiB);
  EXPECT_EQ(parse_bytes("LIMIT", "8GB"), 8 * GiB);
  EXPECT_EQ(parse_bytes("LIMIT", "1T"), 1024 * GiB);
  for (const char* text : {"", "G", "-1", "0", "0G", "1.5G", "8X", "8 G", "8Gi", "8GBs", "12abc", "8\v",
                           "99999999999999999999", "18446744073709551615T", "200T"}) {
    EXPECT_THROW(parse_bytes("LIMIT", text), ValueError) << text;
  }
  try {
    parse_bytes("LIMIT", "lots");
  } catch (const ValueError& error) {
    EXPECT_STREQ(
        error.what(),
        "[cuda] LIMIT='lots': must be a number of bytes above 0, with K, M, G or T for powers of 1024, "
        "like 512M or 8G");
  }
}

TEST(PoolSizes, AreWrittenForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(1 * GiB - 1), "1.00 GiB");
  EXPECT_EQ(format_bytes(5000 * 1024 * GiB), "5000.00 TiB");
}

TEST(PoolEnvironment, SetsLimitAndPoison) {
  EXPECT_EQ(PoolOptions::from_environment().limit, max_block_bytes);
  EXPECT_FALSE(PoolOptions::from_environment().poison);
  setenv("FERRITE_CUDA_MEMORY_LIMIT", "2G", 1);
  setenv("FERRITE_POISON", "1", 1);
  EXPECT_EQ(PoolOptions::from_environment().limit, 2 * GiB);
  EXPECT_TRUE(PoolOptions::from_environment().poison);
  setenv("FERRITE_CUDA_MEMORY_LIMIT", "much", 1);
  EXPECT_THROW(PoolOptions::from_environment(), ValueError);
  unsetenv("FERRITE_CUDA_MEMORY_LIMIT");
  unsetenv("FERRITE_POISON");
}

}  // namespace
}  // namespace ferrite::cuda
