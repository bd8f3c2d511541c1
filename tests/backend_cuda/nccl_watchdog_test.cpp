// A call of NCCL that the GPU does not end in time. The GPU is held up by the host, for a few seconds.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/dist/collectives.hpp"
#include "ferrite/dist/in_process.hpp"
#include "ferrite/dist/nccl.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void call_on_a_busy_gpu() {
  ::alarm(60);  // should it hang after all, it ends this process, not the suite
  Cuda cuda;
  dist::NcclGroup group(std::move(dist::InProcessGroup::create(1)[0]), 0);
  const Tensor<Cuda> x = ones(cuda, {1000});
  dist::all_reduce(group, x);
  cuda.synchronize();
  group.set_timeout(200ms);
  const auto hold_up = [](void*) { std::this_thread::sleep_for(3s); };
  cuda::check(cudaLaunchHostFunc(cuda.context().stream(), hold_up, nullptr), "test");
  try {
    for (int i = 0; i < 400; ++i) {
      dist::all_reduce(group, x);  // returns at once, until the watchdog has noticed the first
      std::this_thread::sleep_for(50ms);
    }
    std::fputs("nobody noticed", stderr);
  } catch (const dist::DistError& error) {
    std::fputs(error.what(), stderr);
  }
  std::_Exit(0);
}

TEST(NcclWatchdog, NamesTheCallThatTheGpuDoesNotEnd) {
  if (!dist::nccl_unavailable_reason().empty()) GTEST_SKIP() << dist::nccl_unavailable_reason();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process of its own, where CUDA starts anew
  EXPECT_EXIT(call_on_a_busy_gpu(), ::testing::ExitedWithCode(0),
              "all_reduce\\(sum\\) of f32\\[1000\\] did not end within 0.2 s on rank 0");
}

}  // namespace
}  // namespace ferrite
