// Alignment, size classes, statistics, reuse and the environment's switches of the host allocator.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ferrite/core/array.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

TEST(HostAllocator, BlocksAreAlignedAndWritable) {
  for (std::size_t bytes : {0, 1, 63, 64, 65, 512, 513, 4097, 1 << 20, (1 << 20) + 1}) {
    const auto buffer = host_allocator().allocate(bytes);
    ASSERT_NE(buffer->data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u) << bytes;
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(buffer->device(), Device{});
    std::memset(buffer->data(), 1, bytes);
  }
}

TEST(HostAllocator, BlocksWasteAtMostAnEighthOr64Bytes) {
  Allocator& allocator = host_allocator();
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 24); bytes += 1 + bytes / 7) {
    const std::size_t before = allocator.stats().in_use;
    const auto buffer = allocator.allocate(bytes);
    const std::size_t block = allocator.stats().in_use - before;
    ASSERT_GE(block, bytes);
    ASSERT_EQ(block % 64, 0u);
    ASSERT_LE(block - bytes, std::max<std::size_t>(63, bytes / 8)) << bytes;
  }
}

TEST(HostAllocator, StatisticsAreExact) {
  Allocator& allocator = host_allocator();
  allocator.reset_peak();
  const MemoryStats start = allocator.stats();
  EXPECT_EQ(start.peak, start.in_use);
  {
    const auto a = allocator.allocate(100);
    const auto b = allocator.allocate(1000);
    EXPECT_EQ(allocator.stats().in_use, start.in_use + 128 + 1024);
  }
  const auto c = allocator.allocate(64);
  const MemoryStats end = allocator.stats();
  EXPECT_EQ(end.in_use, start.in_use + 64);
  EXPECT_EQ(end.peak, start.in_use + 128 + 1024);
  EXPECT_EQ(end.allocations, start.allocations + 3);
  allocator.release_cache();
  EXPECT_EQ(allocator.stats().cached, 0u);
  EXPECT_EQ(allocator.stats().in_use, start.in_use + 64);
}

TEST(HostAllocator, AbsurdSizesAreOutOfMemory) {
  const MemoryStats before = host_allocator().stats();
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, (std::size_t{1} << 47) + 1}) {
    EXPECT_THROW(host_allocator().allocate(bytes), OutOfMemory) << bytes;
  }
  try {
    host_allocator().allocate(SIZE_MAX);
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(), "[allocate] 18446744073709551615 bytes on cpu: at most 2^47 can be addressed");
  }
  EXPECT_EQ(host_allocator().stats().in_use, before.in_use);
}

TEST(HostAllocator, ThreadsShareIt) {
  const std::size_t before = host_allocator().stats().in_use;
  std::vector<std::thread> threads;
  for (unsigned char t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        const std::size_t bytes = 1 + (i * 37) % 5000;
        const auto buffer = host_allocator().allocate(bytes);
        std::memset(buffer->data(), t, bytes);
        const auto* data = static_cast<unsigned char*>(buffer->data());
        ASSERT_EQ(data[0], t);
        ASSERT_EQ(data[bytes - 1], t);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(host_allocator().stats().in_use, before);
}

TEST(Buffer, CountsInPlaceWrites) {
  const auto buffer = host_allocator().allocate(8);
  EXPECT_EQ(buffer->version(), 0u);
  buffer->bump_version();
  EXPECT_EQ(buffer->version(), 1u);
}

TEST(Array, SeesItsElementsThroughTheOffset) {
  const Array array(host_allocator().allocate(24), Layout::contiguous({2, 3}), DType::f32);
  EXPECT_TRUE(array.is_unique());
  const Array row = array.with_layout(array.layout().slice(0, 1, 1, 1));
  EXPECT_FALSE(array.is_unique());
  EXPECT_EQ(row.data<float>(), array.data<float>() + 3);
  EXPECT_EQ(row.meta(), (Meta{{1, 3}, DType::f32}));
  EXPECT_FALSE(Array().defined());
}

// The environment is read once per process (and AddressSanitizer builds cache nothing unless told to), so
// these run in processes of their own.
class HostAllocatorEnvironment : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override {
    unsetenv("FERRITE_CACHE_BYTES");
    unsetenv("FERRITE_POISON");
  }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool under_sanitizer = true;
#elif defined(__has_feature)
constexpr bool under_sanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool under_sanitizer = false;
#endif

[[noreturn]] void finish(bool good) { std::_Exit(good ? 0 : 1); }

TEST_F(HostAllocatorEnvironment, FreedBlocksAreReused) {
  setenv("FERRITE_CACHE_BYTES", "1000000", 1);
  const auto reuse = [] {
    void* const first = host_allocator().allocate(5000)->data();
    const MemoryStats idle = host_allocator().stats();
    const auto again = host_allocator().allocate(4900);  // the same class
    finish(again->data() == first && idle.cached == 5120 && host_allocator().stats().cached == 0);
  };
  EXPECT_EXIT(reuse(), ::testing::ExitedWithCode(0), "");
}

TEST_F(HostAllocatorEnvironment, TheCacheIsBounded) {
  setenv("FERRITE_CACHE_BYTES", "100000", 1);
  const auto fill = [] {
    bool bounded = true, used = false;
    for (std::size_t i = 0; i < 200; ++i) {
      std::vector<std::shared_ptr<Buffer>> live;
      for (std::size_t k = 0; k < 5; ++k)
        live.push_back(host_allocator().allocate(1 + (i * 977 + k * 61) % 60000));
      live.clear();
      const std::size_t cached = host_allocator().stats().cached;
      bounded = bounded && cached <= 100000;
      used = used || cached > 0;
    }
    host_allocator().allocate(200000);  // larger than the whole cache
    finish(bounded && used && host_allocator().stats().cached <= 100000 &&
           host_allocator().stats().in_use == 0);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(0), "");
}

TEST_F(HostAllocatorEnvironment, ARefusalOfTheSystemIsOutOfMemory) {
  if (under_sanitizer) GTEST_SKIP() << "sanitizers need the address space that this test takes away";
  const auto ask = [] {
    const rlimit limit{std::size_t{4} << 30, std::size_t{4} << 30};
    setrlimit(RLIMIT_AS, &limit);
    const auto small = host_allocator().allocate(100);
    try {
      host_allocator().allocate(std::size_t{8} << 30);
    } catch (const OutOfMemory& error) {
      finish(std::string(error.what()) ==
                 "[allocate] 8589934592 bytes on cpu: the system has no memory left, 128 bytes are in use" &&
             host_allocator().stats().in_use == 128);
    }
    finish(false);
  };
  EXPECT_EXIT(ask(), ::testing::ExitedWithCode(0), "");
}

TEST_F(HostAllocatorEnvironment, PoisonFillsFreshAndReusedMemoryWithNaN) {
  setenv("FERRITE_POISON", "1", 1);
  const auto look = [] {
    bool poisoned = true;
    for (int round = 0; round < 2; ++round) {
      const auto buffer = host_allocator().allocate(4096);
      const auto* bytes = static_cast<std::uint16_t*>(buffer->data());
      for (int i = 0; i < 2048; ++i) {
        poisoned =
            poisoned && std::isnan(to_float(Half{bytes[i]})) && std::isnan(to_float(BFloat16{bytes[i]}));
      }
      poisoned = poisoned && std::isnan(static_cast<float*>(buffer->data())[7]) &&
                 std::isnan(static_cast<double*>(buffer->data())[7]);
      std::memset(buffer->data(), 0, 4096);
    }
    finish(poisoned);
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "");
}

TEST_F(HostAllocatorEnvironment, BadCacheSizesAreAnError) {
  for (const char* value : {"lots", "-1", "5k", ""}) {
    setenv("FERRITE_CACHE_BYTES", value, 1);
    const auto ask = [] {
      try {
        host_allocator();
      } catch (const ValueError&) {
        std::_Exit(7);
      }
      std::_Exit(0);
    };
    EXPECT_EXIT(ask(), ::testing::ExitedWithCode(7), "") << value;
  }
}

TEST_F(HostAllocatorEnvironment, BuffersMayOutliveMain) {
  const auto end = [] {
    static std::shared_ptr<Buffer> late;  // constructed before the allocator, destroyed after main
    late = host_allocator().allocate(100);
    std::exit(0);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ferrite
