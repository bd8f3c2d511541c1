// The list of what preparing to run takes, on the host; and that stopwatches leave it out, on the GPU.
#include "backend_cuda/runtime/compile_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "backend_cuda/runtime/autotune.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/decorators/profiled.hpp"

namespace ferrite::cuda {
namespace {

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

CompileTime find(const std::string& what) {
  for (const CompileTime& time : compile_times())
    if (time.what == what) return time;
  return {what, 0, 0};
}

TEST(CompileTimes, AScopeCountsWhatInnerScopesDoNot) {
  {
    const CompileScope outer("outer");
    sleep_ms(20);
    for (int i = 0; i < 2; ++i) {
      const CompileScope inner("inner");
      sleep_ms(50);
    }
  }
  EXPECT_EQ(find("outer").count, 1);
  EXPECT_EQ(find("inner").count, 2);
  EXPECT_GE(find("inner").seconds, 0.1);
  EXPECT_GE(find("outer").seconds, 0.02);
  EXPECT_LT(find("outer").seconds, find("inner").seconds);
  const auto times = compile_times();
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end(), [](const CompileTime& a, const CompileTime& b) {
    return a.seconds > b.seconds;
  }));
}

TEST(CompileTimes, AScopeThatThrowsIsCountedAndClosed) {
  try {
    const CompileScope outer("failing");
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(find("failing").count, 1);
  {
    const CompileScope alone("alone");
    sleep_ms(1);
  }
  EXPECT_GT(find("alone").seconds, 0);
}

TEST(CompileTimes, ThreadsShareTheListAndNothingElse) {
  std::vector<std::thread> threads;
  const CompileScope around("around");
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) const CompileScope scope("threaded");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(find("threaded").count, 400);
}

TEST(CompileTimes, ChoosingIsCountedRememberingIsNot) {
  const std::vector<std::string> two = {"a", "b"};
  Autotuner tuner("gpu", {true, {}});
  for (int i = 0; i < 3; ++i)
    tuner.choose("problem 17", two, [](std::size_t k) {
      sleep_ms(5);
      return 1.0 + static_cast<double>(k);
    });
  EXPECT_EQ(find("choose problem 17").count, 1);
  EXPECT_GE(find("choose problem 17").seconds, 0.01);
}

TEST(CompileTimes, AreNoPartOfWhatAStopwatchMeasures) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  Cuda gpu;
  constexpr std::int64_t awake = 45'000'000;  // less than 60 ms: a GPU that others use may start a watch late
  const auto nanoseconds = [&](bool compiles) {
    Stopwatch<Cuda> around(gpu);
    Stopwatch<Cuda> watch(gpu);
    {
      std::optional<CompileScope> scope;
      if (compiles) scope.emplace("in a watch");
      sleep_ms(60);
    }
    const std::int64_t inner = watch.stop().duration;
    EXPECT_GE(around.stop().duration, awake) << "the outer one goes on";
    return inner;
  };
  EXPECT_GE(nanoseconds(false), awake);
  EXPECT_LT(nanoseconds(true), 30'000'000);
  EXPECT_EQ(find("start CUDA on cuda:0").count, 1);
}

}  // namespace
}  // namespace ferrite::cuda
