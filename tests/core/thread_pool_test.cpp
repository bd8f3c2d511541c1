// The pool with one, two and seven threads: every chunk once, the same bits, nesting, errors, contention,
// resizing.
#include "ferrite/core/thread_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

class ThreadPool : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

TEST_P(ThreadPool, RunsEveryChunkExactlyOnce) {
  for (std::int64_t chunks : {0, 1, 2, 3, 8, 100, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(chunks));
    parallel_for(chunks, [&](std::int64_t chunk) { ++calls[static_cast<std::size_t>(chunk)]; });
    for (const auto& count : calls) ASSERT_EQ(count, 1) << chunks;
  }
}

TEST_P(ThreadPool, WhatChunksWroteIsVisibleToTheCaller) {
  std::vector<int> values(64);
  for (int round = 1; round <= 2000; ++round) {
    parallel_for(64, [&](std::int64_t chunk) { values[static_cast<std::size_t>(chunk)] += 1; });
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), 0), 64 * round);
  }
}

TEST_P(ThreadPool, ReturnsOnlyWhenTheSlowestChunkIsDone) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> done{0};
    parallel_for(4, [&](std::int64_t chunk) {
      std::this_thread::sleep_for(std::chrono::microseconds(500 * chunk));
      ++done;
    });
    ASSERT_EQ(done, 4);
  }
}

TEST_P(ThreadPool, RangesCoverTheWholeInterval) {
  for (std::int64_t n : {0, 1, 7, 8, 9, 1000}) {
    for (std::int64_t grain : {1, 3, 8, 2000}) {
      std::vector<int> hits(static_cast<std::size_t>(n));
      parallel_ranges(n, grain, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_TRUE(begin % grain == 0 && begin < end && end - begin <= grain);
        for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
      });
      for (int hit : hits) ASSERT_EQ(hit, 1);
    }
  }
}

double chunked_sum() {
  constexpr std::int64_t n = 100000, grain = 1024;
  std::array<double, (n - 1) / grain + 1> partial{};
  parallel_ranges(n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      partial[static_cast<std::size_t>(begin / grain)] += std::sin(static_cast<double>(i)) / 3;
    }
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

TEST_P(ThreadPool, GivesTheSameBitsAsOneThread) {
  const double here = chunked_sum();
  set_num_threads(1);
  EXPECT_EQ(here, chunked_sum());
}

TEST_P(ThreadPool, NestedCallsRunOnTheThreadThatMakesThem) {
  std::atomic<int> inner_chunks{0}, elsewhere{0};
  parallel_for(16, [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(8, [&](std::int64_t) {
      ++inner_chunks;
      if (std::this_thread::get_id() != self) ++elsewhere;
    });
  });
  EXPECT_EQ(inner_chunks, 16 * 8);
  EXPECT_EQ(elsewhere, 0);
}

TEST_P(ThreadPool, RethrowsAnExceptionAndSkipsTheRest) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> running{0}, ran{0};
    try {
      parallel_for(100000, [&](std::int64_t chunk) {
        ++running;
        ++ran;
        if (chunk == 20) {
          --running;
          throw std::invalid_argument("chunk 20");
        }
        // Others sleep, so that they cannot run all the rest while the one that throws waits for a core.
        if (chunk > 20) std::this_thread::sleep_for(std::chrono::microseconds(50));
        --running;
      });
      FAIL() << "no exception";
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), "chunk 20");
    }
    EXPECT_EQ(running, 0);
    ASSERT_LT(ran, 100000);
  }
  EXPECT_NO_THROW(chunked_sum());  // the pool works on
}

TEST_P(ThreadPool, OneOfSeveralExceptionsArrives) {
  EXPECT_THROW(parallel_for(64, [](std::int64_t) { throw std::out_of_range("every chunk"); }),
               std::out_of_range);
}

TEST_P(ThreadPool, ServesConcurrentCallers) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::array<std::int64_t, 32> squares{};
        parallel_for(32,
                     [&](std::int64_t chunk) { squares[static_cast<std::size_t>(chunk)] = chunk * chunk; });
        for (std::int64_t i = 0; i < 32; ++i) wrong += squares[static_cast<std::size_t>(i)] != i * i;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPool, WakesUpAfterSleeping) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // far beyond the spinning of the workers
    std::atomic<int> count{0};
    parallel_for(3, [&](std::int64_t) { ++count; });
    ASSERT_EQ(count, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPool, ::testing::Values(1, 2, 7));

TEST(ThreadPoolSize, EveryThreadTakesPart) {
  const int before = num_threads();
  set_num_threads(4);
  // Each chunk waits until all four threads hold one, so that the test ends only if they all work.
  std::set<std::thread::id> seen;
  std::mutex mutex;
  std::atomic<int> arrived{0};
  parallel_for(4, [&](std::int64_t) {
    {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    ++arrived;
    while (arrived < 4) std::this_thread::yield();
  });
  EXPECT_EQ(seen.size(), 4u);
  set_num_threads(before);
}

TEST(ThreadPoolSize, ChangesBetweenJobsAndInsideThem) {
  const int before = num_threads();
  for (int round = 0; round < 100; ++round) {
    const int n = 1 + (round * 5) % 9;
    set_num_threads(n);
    EXPECT_EQ(num_threads(), n);
    std::atomic<int> count{0};
    parallel_for(10, [&](std::int64_t chunk) {
      if (chunk == 5) set_num_threads(1 + round % 3);
      ++count;
    });
    ASSERT_EQ(count, 10);
  }
  set_num_threads(before);
}

TEST(ThreadPoolSize, RefusesValuesOutOfRange) {
  for (int n : {0, -1, 257}) {
    try {
      set_num_threads(n);
      FAIL() << n;
    } catch (const ValueError& error) {
      EXPECT_EQ(error.what(), "[set_num_threads] " + std::to_string(n) + ": must be from 1 to 256");
    }
  }
}

// The variable is read once per process, so each case runs in a process of its own.
class ThreadPoolEnvironment : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override { unsetenv("FERRITE_NUM_THREADS"); }
};

TEST_F(ThreadPoolEnvironment, SetsTheDefault) {
  setenv("FERRITE_NUM_THREADS", "3", 1);
  EXPECT_EXIT(std::_Exit(num_threads()), ::testing::ExitedWithCode(3), "");
}

TEST_F(ThreadPoolEnvironment, BadValuesAreAnError) {
  for (const char* value : {"0", "257", "many", "2x", "-1"}) {
    setenv("FERRITE_NUM_THREADS", value, 1);
    const auto ask = [] {
      try {
        num_threads();
      } catch (const ValueError&) {
        std::_Exit(7);
      }
      std::_Exit(0);
    };
    EXPECT_EXIT(ask(), ::testing::ExitedWithCode(7), "") << value;
  }
}

TEST_F(ThreadPoolEnvironment, StaticDestructorsMayStillUseThePool) {
  setenv("FERRITE_NUM_THREADS", "4", 1);
  const auto end = [] {
    static struct Late {
      ~Late() {
        std::atomic<int> count{0};
        parallel_for(16, [&](std::int64_t) { ++count; });
        if (count != 16) std::_Exit(1);
      }
    } late;
    chunked_sum();
    std::exit(0);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ferrite
