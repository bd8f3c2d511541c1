// Contexts, copies and real memory of the GPUs of this machine; SKIPPED, with the reason, where there are
// none.
#include "backend_cuda/runtime/device_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

/// Bytes that differ between seeds and between positions, with no period of a power of two.
std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<unsigned char>((i * 131 + seed * 71 + i / 251) % 253);
  return data;
}

std::vector<unsigned char> download(DeviceContext& context, const Buffer& buffer) {
  std::vector<unsigned char> data(buffer.bytes(), 0xee);
  context.copy_to_host(data.data(), buffer.data(), buffer.bytes());
  return data;
}

void expect_copies_work(DeviceContext& context, std::size_t bytes = 10001, unsigned seed = 1) {
  const auto data = pattern(bytes, seed);
  const auto buffer = context.allocate(bytes);
  context.copy_from_host(buffer->data(), data.data(), bytes);
  EXPECT_TRUE(download(context, *buffer) == data) << bytes << " bytes";
}

struct DeviceContextTest : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    context = &DeviceContext::of(0);
  }
  DeviceContext* context = nullptr;
};

TEST(CudaDevices, AGpuThatIsNotThereIsADeviceError) {
  const int count = device_count();
  EXPECT_EQ(count, cuda_device_count());
  EXPECT_EQ(count == 0, !why_no_device().empty());
  EXPECT_EQ(cuda_devices().size(), static_cast<std::size_t>(count));
  for (const int index : {-1, count, count + 100}) {
    try {
      DeviceContext::of(index);
      ADD_FAILURE() << index;
    } catch (const DeviceError& error) {
      const std::string expected = count == 0 ? why_no_device() : "this machine has " + std::to_string(count);
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
}

TEST_F(DeviceContextTest, DevicesAreDescribed) {
  for (const CudaDeviceInfo& info : cuda_devices()) {
    EXPECT_FALSE(info.name.empty());
    EXPECT_GE(info.compute_major, 5);
    EXPECT_GT(info.multiprocessors, 0);
    EXPECT_GT(info.clock_mhz, 100);
    EXPECT_GT(info.bandwidth(), 1e10);
    EXPECT_LT(info.bandwidth(), 1e14);
    EXPECT_GT(info.total_bytes, 1 * GiB);
    EXPECT_LE(info.free_bytes, info.total_bytes);
    EXPECT_GE(info.driver_version, info.runtime_version / 1000 * 1000);
  }
}

TEST_F(DeviceContextTest, IsOnePerGpu) {
  std::vector<std::thread> threads;
  std::vector<DeviceContext*> seen(8);
  for (auto& slot : seen) threads.emplace_back([&slot] { slot = &DeviceContext::of(0); });
  for (auto& thread : threads) thread.join();
  for (const DeviceContext* other : seen) EXPECT_EQ(other, context);
}

TEST_F(DeviceContextTest, CopiesOfAllSizesRoundTrip) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{511}, 64 * KiB + 1, 4 * MiB - 1, 4 * MiB,
        4 * MiB + 1, 12 * MiB + 7, std::size_t{100'000'001}}) {
    expect_copies_work(*context, bytes, 5);
  }
}

TEST_F(DeviceContextTest, TheSourceMayChangeAfterACopyFromHost) {
  for (const std::size_t bytes : {std::size_t{1000}, 30 * MiB}) {
    const auto expected = pattern(bytes, 3);
    auto data = expected;
    const auto buffer = context->allocate(bytes);
    context->copy_from_host(buffer->data(), data.data(), bytes);
    std::fill(data.begin(), data.end(), 0);
    EXPECT_TRUE(download(*context, *buffer) == expected);
  }
}

TEST_F(DeviceContextTest, ManySmallCopiesGoAroundTheRing) {
  constexpr std::size_t count = 30000, bytes = 1000;  // 30 MB through a ring of 16 MiB
  const auto buffer = context->allocate(count * bytes);
  const auto expected = pattern(count * bytes, 9);
  auto* const target = static_cast<std::byte*>(buffer->data());
  for (std::size_t i = 0; i < count; ++i) {
    context->copy_from_host(target + i * bytes, expected.data() + i * bytes, bytes);
  }
  EXPECT_TRUE(download(*context, *buffer) == expected);
}

TEST_F(DeviceContextTest, CopiesOnTheDeviceKeepTheOrderOfTheStream) {
  constexpr std::size_t bytes = 20 * MiB + 3;
  const auto first = pattern(bytes, 1), second = pattern(bytes, 2);
  const auto a = context->allocate(bytes), b = context->allocate(bytes);
  context->copy_from_host(a->data(), first.data(), bytes);
  context->copy_on_device(b->data(), a->data(), bytes);
  context->copy_from_host(a->data(), second.data(), bytes);  // behind the copy that reads it
  EXPECT_TRUE(download(*context, *b) == first);
  EXPECT_TRUE(download(*context, *a) == second);
}

TEST_F(DeviceContextTest, FreedMemoryIsSafeToReuseAtOnce) {
  constexpr std::size_t bytes = 40 * MiB;
  const auto first = pattern(bytes, 1), second = pattern(bytes, 2);
  const auto kept = context->allocate(bytes);
  const void* address;
  {
    const auto temporary = context->allocate(bytes);
    address = temporary->data();
    context->copy_from_host(temporary->data(), first.data(), bytes);
    context->copy_on_device(kept->data(), temporary->data(), bytes);
  }
  const auto next = context->allocate(bytes);
  EXPECT_EQ(next->data(), address);
  context->copy_from_host(next->data(), second.data(), bytes);
  EXPECT_TRUE(download(*context, *kept) == first);
  EXPECT_TRUE(download(*context, *next) == second);
}

TEST_F(DeviceContextTest, ThreadsCopyAtOnce) {
  const std::size_t before = context->pool().stats().in_use;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([this, t] {
      for (unsigned i = 0; i < 20; ++i)
        expect_copies_work(*context, 1 + (i * 7919 + t * 104729) * 13, t * 100 + i);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(context->pool().stats().in_use, before);
}

TEST_F(DeviceContextTest, ARealOverAllocationLeavesEverythingUsable) {
  const std::size_t total = context->properties().totalGlobalMem;
  const PoolStats before = context->common_pool().pool_stats();
  {
    const OpScope scope("matmul");
    try {
      context->allocate(total + 1 * GiB);
      ADD_FAILURE() << "more than the GPU has";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(std::string(error.what()).rfind("[matmul] ", 0), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find("free on the device"), std::string::npos) << error.what();
    }
  }
  expect_copies_work(*context);
  std::vector<std::shared_ptr<Buffer>> hoard;  // the hard way: until nothing is left
  const auto take_all = [&] {
    while (hoard.size() < 10000) hoard.push_back(context->allocate(total / 16));
  };
  EXPECT_THROW(take_all(), OutOfMemory);
  EXPECT_GE(hoard.size(), 1u);
  hoard.clear();
  expect_copies_work(*context);
  EXPECT_EQ(context->common_pool().pool_stats().in_use, before.in_use);
  EXPECT_NO_THROW(context->allocate(total / 4));
  context->common_pool().release_cache();
  expect_copies_work(*context);
}

TEST_F(DeviceContextTest, ALimitLeavesEverythingUsable) {
  Pool& pool = context->common_pool();
  pool.release_cache();
  const std::size_t limit = pool.limit();
  pool.set_limit(pool.pool_stats().reserved + 64 * MiB);
  EXPECT_THROW(context->allocate(65 * MiB), OutOfMemory);
  expect_copies_work(*context, 20 * MiB);
  pool.set_limit(limit);
  EXPECT_NO_THROW(context->allocate(65 * MiB));
}

TEST_F(DeviceContextTest, CachedMemoryGoesBackToTheDevice) {
  Pool& pool = context->common_pool();
  pool.release_cache();
  const PoolStats before = pool.pool_stats();
  context->allocate(256 * MiB);
  EXPECT_EQ(pool.pool_stats().reserved, before.reserved + 256 * MiB);
  pool.release_cache();
  EXPECT_EQ(pool.pool_stats().reserved, before.reserved);
}

TEST_F(DeviceContextTest, MemoryOfTheCopyStreamComesBack) {
  Pool& pool = context->common_pool();
  auto buffer = context->allocate(128 * MiB);
  check(cudaMemsetAsync(buffer->data(), 1, buffer->bytes(), context->copy_stream()), "test");
  Pool::record_use(*buffer, context->copy_stream());
  buffer.reset();
  context->synchronize();
  context->allocate(1);  // polls the marks
  EXPECT_EQ(pool.pool_stats().parked, 0u);
}

TEST_F(DeviceContextTest, CapturesRefuseHostCopiesAndAllocateFromTheirArena) {
  PoolHandle arena = Pool::make_arena(context->common_pool());
  const auto target = context->allocate(100);
  const auto data = pattern(100, 1);
  cudaGraph_t graph = nullptr;
  std::shared_ptr<Buffer> inside;
  check(cudaStreamBeginCapture(context->stream(), cudaStreamCaptureModeThreadLocal), "test");
  {
    const ArenaScope scope(*context, *arena);
    EXPECT_TRUE(context->is_capturing());
    EXPECT_EQ(&context->pool(), arena.get());
    EXPECT_THROW(context->copy_from_host(target->data(), data.data(), 100), BackendError);
    EXPECT_NO_THROW(inside = context->allocate(300 * MiB));  // takes a segment from the device
    EXPECT_NO_THROW(context->copy_on_device(inside->data(), target->data(), 100));
  }
  check(cudaStreamEndCapture(context->stream(), &graph), "test");
  EXPECT_EQ(&context->pool(), &context->common_pool());
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "test");
  context->copy_from_host(target->data(), data.data(), 100);
  check(cudaGraphLaunch(executable, context->stream()), "test");
  std::vector<unsigned char> seen(100);
  context->copy_to_host(seen.data(), inside->data(), 100);
  EXPECT_EQ(seen, data);
  context->synchronize();
  check(cudaGraphExecDestroy(executable), "test");
  check(cudaGraphDestroy(graph), "test");
  inside.reset();
  arena.reset();
  expect_copies_work(*context);
}

TEST_F(DeviceContextTest, ARefusedLaunchIsAnErrorOnce) {
  // A copy between no device pointers fails without harm to the context.
  EXPECT_THROW(context->copy_on_device(nullptr, nullptr, 16), BackendError);
  EXPECT_NO_THROW(check_launch("fill"));
  expect_copies_work(*context);
}

TEST_F(DeviceContextTest, PeersCopyBothWays) {
  if (device_count() < 2) GTEST_SKIP() << "needs two GPUs, this machine has " << device_count();
  DeviceContext& other = DeviceContext::of(1);
  constexpr std::size_t bytes = 50 * MiB + 1;
  const auto first = pattern(bytes, 1), second = pattern(bytes, 2);
  const auto here = context->allocate(bytes), there = other.allocate(bytes);
  context->copy_from_host(here->data(), first.data(), bytes);
  other.copy_from_device(there->data(), *context, here->data(), bytes);
  context->copy_from_host(here->data(), second.data(), bytes);  // behind the copy that reads it
  EXPECT_TRUE(download(other, *there) == first);
  EXPECT_TRUE(download(*context, *here) == second);
  context->copy_from_device(here->data(), other, there->data(), bytes);
  EXPECT_TRUE(download(*context, *here) == first);
}

// The environment is read once per GPU, so these run in processes of their own.
struct DeviceContextEnvironment : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void TearDown() override {
    unsetenv("FERRITE_CUDA_MEMORY_LIMIT");
    unsetenv("FERRITE_POISON");
  }
};
[[noreturn]] void finish(bool good) { std::_Exit(good ? 0 : 1); }

TEST_F(DeviceContextEnvironment, PoisonFillsFreshMemory) {
  setenv("FERRITE_POISON", "1", 1);
  const auto look = [] {
    const auto data = download(DeviceContext::of(0), *DeviceContext::of(0).allocate(5000));
    finish(std::all_of(data.begin(), data.end(), [](unsigned char byte) { return byte == 0xff; }));
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "");
}

TEST_F(DeviceContextEnvironment, ABadLimitIsAValueErrorAndCanBeMended) {
  setenv("FERRITE_CUDA_MEMORY_LIMIT", "plenty", 1);
  const auto mend = [] {
    bool refused = false;
    try {
      DeviceContext::of(0);
    } catch (const ValueError&) {
      refused = true;
    }
    setenv("FERRITE_CUDA_MEMORY_LIMIT", "1G", 1);
    finish(refused && DeviceContext::of(0).pool().limit() == 1 * GiB);
  };
  EXPECT_EXIT(mend(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ferrite::cuda
