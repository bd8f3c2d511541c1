// What can go wrong, and that it ends in the right error and leaves everything usable: GPUs that are not
// there, drivers, memory, captures, kernels, files.
#include <cuda_runtime_api.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "backend_cuda/faults_support.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

TEST(CudaDriver, EveryReasonIsASentence) {
  using cuda::why_no_device;
  EXPECT_EQ(why_no_device(cudaErrorInsufficientDriver, 0, 13000, nullptr),
            "no NVIDIA driver is installed or loaded");
  EXPECT_EQ(why_no_device(cudaErrorStubLibrary, 0, 13000, nullptr),
            "no NVIDIA driver is installed or loaded");
  EXPECT_EQ(
      why_no_device(cudaErrorInsufficientDriver, 12080, 13000, nullptr),
      "the NVIDIA driver is too old: it knows CUDA 12.8, ferrite was built with 13.0; update the driver");
  EXPECT_EQ(why_no_device(cudaErrorNoDevice, 13000, 13000, nullptr), "this machine has no NVIDIA GPU");
  EXPECT_EQ(why_no_device(cudaErrorNoDevice, 13000, 13000, "7"),
            "no NVIDIA GPU is visible (CUDA_VISIBLE_DEVICES='7')");
  EXPECT_EQ(why_no_device(cudaErrorSystemNotReady, 13000, 13000, nullptr),
            "CUDA does not start: cudaErrorSystemNotReady (system not yet initialized)");
}

TEST(CudaDriver, OneThatIsTooOldIsADeviceErrorAndTheCpuWorks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  const std::optional<std::string> folders = before ? std::optional<std::string>(before) : std::nullopt;
  setenv("LD_LIBRARY_PATH", (FERRITE_OLD_DRIVER_DIR + (folders ? ":" + *folders : "")).c_str(), 1);
  const auto body = [] {
    require(cuda_device_count() == 0, "the old driver was not found");
    const std::string text = text_of<DeviceError>([] { Cuda gpu; });
    require(contains(text, "[cuda] cuda:0: the NVIDIA driver is too old: it knows CUDA 11.4, "), text);
    Cpu cpu;
    require(sum(ones(cpu, {1000})).item() == 1000, "the cpu gives another sum");
  };
  EXPECT_EXIT(run_as_child(body), ::testing::ExitedWithCode(0), "");
  folders ? setenv("LD_LIBRARY_PATH", folders->c_str(), 1) : unsetenv("LD_LIBRARY_PATH");
}

TEST(CudaErrors, AnIndexOutOfRangeReadsAsOnTheCpu) {
  const auto fault = [](std::string_view op, long long index, long long extent, long long position) {
    return describe(cuda::IndexFault{reinterpret_cast<unsigned long long>(op.data()), op.size(), index,
                                     extent, position + 1});
  };
  Cpu cpu;
  const auto targets = from_vector(cpu, std::vector<std::int64_t>{0, 4, 5, 1});
  const std::string loss = text_of<ValueError>([&] { softmax_cross_entropy(ones(cpu, {4, 5}), targets); });
  EXPECT_EQ(loss.rfind(fault("softmax_cross_entropy", 5, 5, 2), 0), 0u) << loss;
  const std::string ids = text_of<ValueError>([&] { embedding(ones(cpu, {5, 3}), targets); });
  EXPECT_EQ(ids, fault("embedding", 5, 5, 2));
  EXPECT_EQ(fault("softmax_cross_entropy_backward", -7, 5, -1),
            "[softmax_cross_entropy_backward] target -7 is out of range for 5 classes");
  EXPECT_EQ(fault("gather", 9, 3, -1), "[gather] index 9 is out of range for an axis of length 3");
  EXPECT_EQ(fault("max_pool2d_backward", 9, 4, 0),
            "[max_pool2d_backward] index 9 at position 0 is out of range for planes of 4 elements");
}

TEST_F(CudaFaults, ADeviceThatIsNotThere) {
  for (const int index : {-1, cuda_device_count(), 64, std::numeric_limits<int>::max()}) {
    const std::string text = text_of<DeviceError>([&] { Cuda gpu(index); });
    EXPECT_TRUE(contains(text, "cuda:" + std::to_string(index) + ": this machine has ")) << text;
  }
  Cuda gpu;
  EXPECT_TRUE(is_usable(gpu));
}

TEST_F(CudaFaults, MoreMemoryThanTheLimit) {
  Cuda gpu;
  gpu.release_cache();
  const auto a = ones(gpu, {16384, 16}), b = ones(gpu, {16, 16384});
  const MemoryStats now = gpu.memory_stats();
  gpu.set_memory_limit(now.in_use + now.cached + 128 * MiB);
  EXPECT_EQ(gpu.memory_limit(), now.in_use + now.cached + 128 * MiB);
  const std::string text = text_of<OutOfMemory>([&] { matmul(a, b); });  // 1 GiB
  EXPECT_EQ(text.rfind("[matmul] 1.00 GiB", 0), 0u) << text;
  EXPECT_TRUE(contains(text, "limit")) << text;
  EXPECT_TRUE(is_usable(gpu)) << "below the limit";
  gpu.set_memory_limit(std::numeric_limits<std::size_t>::max());
  const auto product = matmul(a, b);
  EXPECT_EQ(min(product).item(), 16);
  EXPECT_EQ(max(product).item(), 16);
}

TEST_F(CudaFaults, MoreMemoryThanTheCardHas) {
  Cuda gpu;
  const std::size_t before = gpu.memory_stats().in_use;
  const auto bytes = static_cast<std::int64_t>(4 * cuda_devices()[0].total_bytes);
  for (int i = 0; i < 3; ++i) {
    const std::string text = text_of<OutOfMemory>([&] { full(gpu, {bytes}, 1, DType::u8); });
    EXPECT_EQ(text.rfind("[full] ", 0), 0u) << text;
    EXPECT_TRUE(is_usable(gpu));
  }
  EXPECT_EQ(gpu.memory_stats().in_use, before);
}

TEST_F(CudaFaults, ALaunchThatIsRefused) {
  Cuda gpu;
  static const char no_kernel = 0;
  const std::string text = text_of<BackendError>([&] {
    const cuda::Call call(gpu, "softmax");
    void* arguments[] = {nullptr};
    cuda::check(cudaLaunchKernel(&no_kernel, dim3(1), dim3(1), arguments, 0, call.stream()), call.op());
  });
  EXPECT_EQ(text.rfind("[softmax] cudaErrorInvalid", 0), 0u) << text;  // which one depends on the driver
  EXPECT_TRUE(is_usable(gpu));
}

TEST_F(CudaFaults, ATargetThatIsNoClass) {
  Cuda gpu;
  const auto logits = ones(gpu, {4, 5});
  for (int i = 0; i < 2; ++i) {
    const auto targets = from_vector(gpu, std::vector<std::int64_t>{0, 4, 7, 1});
    const std::string text = text_of<ValueError>([&] { softmax_cross_entropy(logits, targets).item(); });
    EXPECT_EQ(text.rfind("[softmax_cross_entropy] target 7", 0), 0u) << text;
    EXPECT_TRUE(contains(text, "out of range for 5 classes")) << text;
    EXPECT_TRUE(is_usable(gpu));
  }
}

TEST_F(CudaFaults, WhatCannotBeCaptured) {
  Cuda gpu;
  ASSERT_TRUE(is_usable(gpu));  // libraries choose their kernels
  const auto x = ones(gpu, {64, 64}), y = full(gpu, {64, 64}, 2, DType::f32);
  LateReader reader(gpu);
  const auto cannot = [&](std::string_view reason, const std::function<void()>& step) {
    const std::string text = text_of<BackendError>([&] { CudaGraph::capture(gpu, step); });
    EXPECT_TRUE(contains(text, reason)) << text;
    EXPECT_TRUE(is_usable(gpu)) << reason;
    Tensor<Cuda> z;  // what can be captured still is, and gives the same
    auto graph = CudaGraph::capture(gpu, [&] { z = matmul(x, y) + x; });
    graph.replay();
    EXPECT_EQ(z.to_vector(), std::vector<float>(64 * 64, 129)) << reason;
  };
  cannot("[copy_to_host]", [&] { sum(x).item(); });
  cannot("[copy_from_host]", [&] { from_vector(gpu, std::vector<float>{1, 2}); });
  cannot("[synchronize]", [&] { gpu.synchronize(); });
  cannot("[push]", [&] { reader.push(sum(x)); });
  cannot("[stopwatch]", [&] { Stopwatch<Cuda>(gpu).stop(); });
  cannot("one at a time", [&] { CudaGraph::capture(gpu, [] {}); });
  EXPECT_EQ(reader.pending(), 0u);

  const auto bytes = static_cast<std::int64_t>(4 * cuda_devices()[0].total_bytes);
  EXPECT_THROW(CudaGraph::capture(gpu, [&] { full(gpu, {bytes}, 1, DType::u8); }), OutOfMemory);
  EXPECT_TRUE(is_usable(gpu));
}

/// A kernel is sent to an address where nothing is: CUDA itself is lost to the process, and says so from then
/// on; nothing else is.
void lose_cuda() {
  Cuda gpu;
  require(is_usable(gpu), "not usable to begin with");
  const auto x = ones(gpu, {1000}), a = ones(gpu, {64, 96}), b = ones(gpu, {96, 80});
  const auto image = ones(gpu, {1, 3, 8, 8}), filter = ones(gpu, {2, 3, 3, 3});
  const Tensor<Cuda> nowhere(gpu, x.primitive().with_layout({{1000}, {1}, std::int64_t{1} << 44}));
  const auto y = nowhere + 1;  // nobody has noticed yet

  const auto expect_lost = [](std::string_view prefix, const std::function<void()>& f) {
    const std::string text = text_of<BackendError>(f);
    require(text.rfind(prefix, 0) == 0 && contains(text, "cudaErrorIllegalAddress") &&
                contains(text, "CUDA in this process is lost"),
            "after " + std::string(prefix) + ": " + text);
  };
  for (int i = 0; i < 2; ++i) {
    expect_lost("[synchronize]", [&] { gpu.synchronize(); });
    expect_lost("[add]", [&] { x + x; });
    expect_lost("[sum]", [&] { sum(x); });
    expect_lost("[matmul]", [&] { matmul(a, b); });
    expect_lost("[", [&] { conv2d(image, filter); });
    expect_lost("[copy_from_host]", [&] { from_vector(gpu, std::vector<float>{1, 2}); });
    expect_lost("[copy_to_host]", [&] { x.to_vector(); });
    expect_lost("[full]", [&] { full(gpu, {std::int64_t{1} << 30}, 1, DType::u8); });  // a new segment
    expect_lost("[stopwatch]", [&] { Stopwatch<Cuda>(gpu).stop(); });
    expect_lost("[capture]", [&] { CudaGraph::capture(gpu, [] {}); });
  }
  Cpu cpu;
  require(sum(matmul(ones(cpu, {64, 96}), ones(cpu, {96, 80}))).item() == 64 * 96 * 80, "the cpu is wrong");
}

TEST_F(CudaFaults, AKernelThatFails) {
  EXPECT_EXIT(run_as_child(lose_cuda), ::testing::ExitedWithCode(0), "");
  Cuda gpu;
  EXPECT_TRUE(is_usable(gpu)) << "it was another process that lost it";
}

/// The file of measured choices is read once per process.
void meet_a_corrupt_plan_cache() {
  const ScratchFolder folder;
  const std::filesystem::path file = folder / "autotune.jsonl";
  setenv("FERRITE_CACHE_DIR", file.parent_path().c_str(), 1);
  unsetenv("FERRITE_AUTOTUNE");
  std::ofstream(file) << R"({"environment": "gpu", "prob)";
  Cuda gpu;
  require(is_usable(gpu), "other results");
  require(max(matmul(ones(gpu, {256, 256}), ones(gpu, {256, 256}))).item() == 256, "another product");
  const auto warnings = gpu.warnings();
  require(warnings.size() == 1, std::to_string(warnings.size()) + " warnings");
  require(contains(warnings[0], file.string()) && contains(warnings[0], "corrupt"), warnings[0]);
  std::ifstream lines(file);
  std::string cut_off, choice;
  std::getline(lines, cut_off);
  require(std::getline(lines, choice) && nlohmann::json::accept(choice), "no choice was added");
}

TEST_F(CudaFaults, ACorruptPlanCache) {
  EXPECT_EXIT(run_as_child(meet_a_corrupt_plan_cache), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ferrite::testing
