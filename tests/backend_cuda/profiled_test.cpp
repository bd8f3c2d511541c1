// Profiled<Cuda>: times are the GPU's, nobody waits for them, captured steps stay as they are, and the report
// says what it was measured on.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/launch.hpp"
#include "scratch_folder.hpp"

namespace ferrite {
namespace {

using ProfiledCuda = Profiled<Cuda>;

struct CudaProfiled : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

OpProfile find(const Profile& profile, std::string_view name) {
  for (const OpProfile& op : profile.ops)
    if (op.name == name) return op;
  ADD_FAILURE() << "no row for " << name;
  return {};
}
double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(CudaProfiled, TimesTheGpuAndWaitsForNothing) {
  ProfiledCuda b;
  const auto x = ones(b, {4096, 4096});
  matmul(x, x);  // chooses its plan
  b.synchronize();
  b.reset();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) matmul(x, x);  // 3 ms each
  const double host = seconds_since(start);
  b.synchronize();
  const double all = seconds_since(start);
  const OpProfile product = find(b.profile(), "matmul");
  EXPECT_EQ(product.calls, 100);
  EXPECT_LT(host, 0.3 * all);
  EXPECT_LT(product.seconds, 1.02 * all);
  EXPECT_GT(product.seconds, 0.7 * all);
  EXPECT_LE(product.min_seconds, product.median_seconds);
  EXPECT_LE(product.median_seconds, product.max_seconds);
}

TEST_F(CudaProfiled, TheTraceSaysInWhichBlocksAKernelRan) {
  ProfiledCuda b(ProfiledConfig{}.with_trace(true));
  const auto k = kernel::Kernel::from_source(
      "import warp as wp\n\n\n@wp.kernel\ndef next(x: wp.array[float]):\n    i = wp.tid()\n"
      "    x[i] = x[i] + 1.0\n");
  auto x = zeros(b, {1000});
  k.launch(b, 1000, x);
  exp(x);
  const testing::ScratchFolder folder;
  b.write_trace(folder / "trace.json");
  const auto trace = nlohmann::json::parse(std::ifstream(folder / "trace.json"));
  int launches = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (!event["args"].contains("launch")) continue;
    ++launches;
    EXPECT_EQ(event["name"], "next");
    EXPECT_EQ(event["args"]["launch"], "4 blocks of 256 threads");
  }
  EXPECT_EQ(launches, 1);
}

TEST_F(CudaProfiled, CountsMoreCallsThanMayBePending) {
  ProfiledCuda b;
  Cuda plain;
  constexpr int calls = 3 * ProfileRecorder::most_pending + 17;
  const auto microseconds = [](auto& backend) {
    const auto x = ones(backend, {1024});
    backend.synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) x + x;
    backend.synchronize();
    return 1e6 * seconds_since(start) / calls;
  };
  microseconds(b);  // makes the events
  b.reset();
  const double profiled = microseconds(b), bare = microseconds(plain);
  std::printf("one add: %.2f us, profiled %.2f us\n", bare, profiled);
  EXPECT_EQ(find(b.profile(), "add").calls, calls);
  EXPECT_LT(profiled, bare + 25);
}

TEST_F(CudaProfiled, TracesInTheOrderOfTheGpu) {
  const testing::ScratchFolder folder;
  ProfiledCuda b(ProfiledConfig{}.with_trace(true));
  const auto x = ones(b, {1 << 20});
  for (int i = 0; i < 20; ++i) exp(x);
  cat(std::vector{x, x}, 0);  // composed of two copies
  b.write_trace(folder / "trace.json");
  const auto trace = nlohmann::json::parse(std::ifstream(folder / "trace.json"));
  double previous = 0, cat_begin = -1, cat_end = -1;
  std::vector<std::pair<double, double>> copies;
  int exps = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    if (event["name"] == "exp") {
      EXPECT_GE(begin, previous - 1) << "one after the other, to 1 us";
      previous = end;
      ++exps;
    } else if (event["name"] == "copy") {
      copies.emplace_back(begin, end);
    } else if (event["name"] == "cat") {
      cat_begin = begin;
      cat_end = end;
    }
  }
  EXPECT_EQ(exps, 20);
  ASSERT_EQ(copies.size(), 2u);
  for (const auto& [begin, end] : copies) {
    EXPECT_GE(begin, cat_begin - 1);
    EXPECT_LE(end, cat_end + 1);
  }
}

TEST_F(CudaProfiled, LeavesCapturedStepsAlone) {
  ProfiledCuda b;
  const auto x = ones(b, {64, 64});
  matmul(x, x);
  b.reset();
  Tensor<ProfiledCuda> y;
  auto graph = CudaGraph::capture(b.inner(), [&] { y = softmax(matmul(x, x) + x); });
  EXPECT_TRUE(b.profile().ops.empty()) << "nothing has run";
  for (int i = 0; i < 3; ++i) graph.replay();
  EXPECT_FLOAT_EQ(select(reshape(y, {64 * 64}), 0, 7).item(), 1.0f / 64);
  exp(x);
  EXPECT_EQ(find(b.profile(), "exp").calls, 1);
}

TEST_F(CudaProfiled, ReportsDevicePoolTransfersAndCompileTimes) {
  ProfiledCuda b;
  const auto x = from_vector(b, std::vector<float>(1 << 16), {256, 256});
  matmul(x, x).to_vector();
  const std::size_t peak = b.memory_stats().peak;
  const auto json = nlohmann::json::parse(to_json(b.profile()));
  EXPECT_EQ(b.memory_stats().peak, peak) << "measuring the ceilings takes nothing from the pool";
  const CudaDeviceInfo gpu = cuda_devices()[0];
  EXPECT_EQ(json["devices"][0]["device"], "cuda:0");
  EXPECT_EQ(json["devices"][0]["name"], gpu.name);
  EXPECT_EQ(json["devices"][0]["memory_bytes"], gpu.total_bytes);
  EXPECT_EQ(json["devices"][0]["multiprocessors"], gpu.multiprocessors);
  EXPECT_GE(json["memory"]["reserved_bytes"], json["memory"]["in_use_bytes"]);
  EXPECT_GE(json["memory"]["segments"], 1);
  EXPECT_EQ(json["transfers"]["host_to_device"]["bytes"], 4 << 16);
  EXPECT_EQ(json["transfers"]["device_to_host"]["calls"], 1);
  EXPECT_GT(json["transfers"]["device_to_host"]["bytes_per_second"], 1e6);
  EXPECT_GT(json["ceilings"]["copy_bytes_per_second"], 1e11);
  EXPECT_LT(json["ceilings"]["copy_bytes_per_second"], 1.05 * gpu.bandwidth());
  EXPECT_GT(json["ceilings"]["product_flops_per_second"], 1e12);
  std::map<std::string, double> compiled;
  for (const auto& time : json["compile_times"]) compiled[time["what"]] = time["seconds"];
  EXPECT_GT(compiled["start CUDA on cuda:0"], 0);
  EXPECT_GT(compiled["start cuBLASLt"], 0);
}

}  // namespace
}  // namespace ferrite
