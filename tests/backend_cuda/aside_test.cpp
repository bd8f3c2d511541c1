// Work aside: its results are those of work in its place, however it is woven into the other work.
#include "ferrite/backend/aside.hpp"

#include <gtest/gtest.h>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/models/pfn/prior_batches.hpp"
#include "ferrite/ops/cholesky.hpp"
#include "ferrite/stacks.hpp"
#include "train/train_test.hpp"

namespace ferrite {
namespace {

using testing::expect_error;
using testing::same_bits;

class CudaAside : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

TEST_F(CudaAside, HasAStreamAndMemoryOfItsOwn) {
  Cuda gpu;
  cuda::DeviceContext& context = gpu.context();
  const cudaStream_t compute = context.stream();
  const auto beside = aside(gpu);
  Tensor<Cuda> made;
  const std::int64_t run = beside->run([&] {
    EXPECT_NE(context.stream(), compute);
    EXPECT_EQ(context.compute_stream(), compute);
    EXPECT_NE(&context.pool(), &context.common_pool());
    made = full(gpu, {1000}, 2.0) + 1;
  });
  EXPECT_EQ(context.stream(), compute);
  EXPECT_EQ(&context.pool(), &context.common_pool());
  beside->wait(run);
  EXPECT_EQ((made * 2).to_vector(), std::vector<float>(1000, 6));
}

/// Memory goes back and forth: what one side frees, the other must not overwrite too early.
TEST_F(CudaAside, RunsFollowTheOrderOfTheirData) {
  Cuda gpu;
  const auto beside = aside(gpu);
  constexpr std::int64_t n = 1 << 22;  // a kernel of it runs for longer than a launch takes
  const Tensor<Cuda> base = cast(remainder(arange(gpu, n), 1024), DType::f32);  // all sums are exact
  const Tensor<Cuda> sum = zeros(gpu, {n}, DType::f32);
  Tensor<Cuda> next = base + 0;
  double factors = 0;
  for (int i = 0; i < 40; ++i) {
    Tensor<Cuda> following;
    const std::int64_t run = beside->run([&] {
      Tensor<Cuda> t = base * (i + 1);
      for (int k = 0; k < 4; ++k) t = t + 1;
      following = t - 4;
    });
    for (int k = 0; k < 3; ++k) assign(sum, sum + next);  // beside it
    factors += 3.0 * std::max(i, 1);
    beside->wait(run);
    next = following;
  }
  EXPECT_EQ(sum.to_vector(), (base * factors).to_vector());
}

TEST_F(CudaAside, WhatItMadeOutlivesIt) {
  Cuda gpu;
  Tensor<Cuda> made;
  {
    const auto beside = aside(gpu);
    beside->wait(beside->run([&] { made = full(gpu, {1 << 20}, 3); }));
  }
  const Tensor<Cuda> others = full(gpu, {1 << 22}, 5);
  EXPECT_EQ(sum(made).item(), 3.0f * (1 << 20));
  EXPECT_EQ(sum(others).item(), 5.0f * (1 << 22));
}

TEST_F(CudaAside, LaterWorkWaitsForARunThatFailed) {
  Cuda gpu;
  const auto beside = aside(gpu);
  const Tensor<Cuda> x = ones(gpu, {1 << 22}, DType::f32), square = ones(gpu, {8, 8}, DType::f32);
  Tensor<Cuda> y;
  EXPECT_THROW(beside->run([&] {
    y = x;
    for (int k = 0; k < 20; ++k) y = y + x;
    matmul(square, square);
  }),
               BackendError);
  assign(x, x * 100);
  EXPECT_EQ(sum(y).item(), 21.0f * (1 << 22));
}

TEST_F(CudaAside, SynchronizeWaitsForIt) {
  Cuda gpu;
  const auto beside = aside(gpu);
  Tensor<Cuda> made;
  cudaStream_t lane = nullptr;
  beside->run([&] {
    lane = gpu.context().stream();
    made = ones(gpu, {1 << 24}, DType::f32);
    for (int k = 0; k < 50; ++k) made = made + 1;
  });
  gpu.synchronize();
  EXPECT_EQ(cudaStreamQuery(lane), cudaSuccess);
}

TEST_F(CudaAside, ALaterRunNeedNotBeDone) {
  Cuda gpu;
  const auto beside = aside(gpu);
  std::vector<Tensor<Cuda>> made(5);
  std::vector<std::int64_t> runs;
  for (int i = 0; i < 5; ++i)
    runs.push_back(beside->run([&] { made[static_cast<std::size_t>(i)] = full(gpu, {1 << 20}, i); }));
  for (const std::size_t i : {1u, 0u, 4u, 2u, 3u}) {  // 0, 2 and 3 were waited for before
    beside->wait(runs[i]);
    EXPECT_EQ(sum(made[i]).item(), static_cast<float>(i << 20));
  }
}

TEST_F(CudaAside, MemoryGoesBackWhenItEnds) {
  Cuda gpu;
  gpu.synchronize();
  const std::size_t before = gpu.memory_stats().in_use;
  {
    const auto beside = aside(gpu);
    Tensor<Cuda> made;
    beside->wait(beside->run([&] { made = zeros(gpu, {1 << 20}, DType::f32); }));
    EXPECT_GE(gpu.memory_stats().in_use, before + (4 << 20));
  }
  EXPECT_EQ(gpu.memory_stats().in_use, before);
}

TEST_F(CudaAside, WhatSharesMemoryIsRefused) {
  Cuda gpu;
  const auto beside = aside(gpu);
  const Tensor<Cuda> a = ones(gpu, {64, 64}, DType::f32), image = ones(gpu, {1, 2, 8, 8}, DType::f32),
                     filter = ones(gpu, {2, 2, 3, 3}, DType::f32);
  const auto refused = [&](const char* op, const std::function<void()>& work) {
    expect_error<BackendError>([&] { beside->run(work); }, {op, "inside work aside"});
    EXPECT_FALSE(gpu.context().lane());
  };
  refused("matmul", [&] { matmul(a, a); });
  refused("conv2d", [&] { conv2d(image, filter); });
  refused("cholesky", [&] { cholesky(a); });
  refused("copy_from_host", [&] { from_vector(gpu, std::vector<float>{1, 2}); });
  refused("aside", [&] { beside->run([] {}); });
  refused("capture", [&] { record(gpu, [] {}); });
  expect_error<BackendError>([&] { record(gpu, [&] { beside->run([] {}); }); },
                             {"aside", "inside a capture"});
  EXPECT_EQ(sum(matmul(a, a)).item(), 64.0f * 64 * 64);
}

/// Chunk after chunk, beside products that keep the GPU busy.
TEST_F(CudaAside, TablesOfThePriorAreThoseOfTheCpu) {
  AnyBackend gpu("cuda"), cpu("cpu");
  pfn::CourseConfig course;
  course.prior.post.categorical_share = 0.5;
  course.stages = {{0, {{40, 24}, {24, 24}}, {3, 5}}};
  course = course.with_cells(2000).with_seed(5);
  pfn::PriorBatches<AnyBackend> fast(course, /*at_once=*/3), plain(course, 1);
  const Tensor<AnyBackend> busy = ones(gpu, {2048, 2048}, DType::f32);
  for (int i = 0; i < 30; ++i) {
    matmul(busy, busy);
    const auto a = fast.load(gpu, *fast.pull()), b = plain.load(cpu, *plain.pull());
    EXPECT_TRUE(same_bits({{"x", to_host(a.x)}}, {{"x", to_host(b.x)}})) << i;
    EXPECT_TRUE(same_bits({{"y", to_host(a.y)}}, {{"y", to_host(b.y)}})) << i;
    for (std::size_t k = 0; k < 3; ++k)
      EXPECT_TRUE(same_bits({{"more", to_host(a.more[k])}}, {{"more", to_host(b.more[k])}})) << i << " " << k;
  }
}

}  // namespace
}  // namespace ferrite
