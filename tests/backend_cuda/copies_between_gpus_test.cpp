// to(backend, x) from a GPU to a GPU: the host sees nothing of it.
#include <gtest/gtest.h>

#include <numeric>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {
namespace {

struct CopiesBetweenGpus : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), -3.f);
  return values;
}
std::int64_t calls_of(const Profile& profile, std::string_view name) {
  for (const OpProfile& op : profile.ops)
    if (op.name == name) return op.calls;
  return 0;
}

TEST_F(CopiesBetweenGpus, OnOneGpuNothingPassesThroughTheHost) {
  Profiled<Cuda> from, into;
  const auto x = from_vector(from, numbers(3000), {50, 60});
  from.reset();
  const auto copy = to(into, x), turned = to(into, transpose(x, 0, 1));
  EXPECT_EQ(calls_of(from.profile(), "copy_to_host"), 0);
  EXPECT_EQ(calls_of(into.profile(), "copy_from_host"), 0);
  EXPECT_EQ(calls_of(into.profile(), "copy_from_device"), 2);
  EXPECT_EQ(copy.to_vector(), numbers(3000));
  EXPECT_EQ(turned.shape(), (Shape{60, 50}));
  EXPECT_EQ(turned.to_vector(), transpose(x, 0, 1).to_vector());
}

TEST_F(CopiesBetweenGpus, TheCopyHasMemoryOfItsOwn) {
  Cuda b;
  const auto x = from_vector(b, numbers(100), {100});
  const auto copy = to(b, x);
  EXPECT_NE(copy.primitive().data(), x.primitive().data());
  EXPECT_EQ(to(b, empty(b, {0, 3})).shape(), (Shape{0, 3}));
}

TEST_F(CopiesBetweenGpus, EveryStackOnAGpuTakesPart) {
  Cuda cuda;
  const auto x = from_vector(cuda, numbers(77), {7, 11});
  const auto values = numbers(77);
  Autodiff<Cuda> autodiff;
  EXPECT_EQ(to(autodiff, x).to_vector(), values);
  EXPECT_EQ(to(cuda, to(autodiff, x)).to_vector(), values);
  for (const char* name : {"cuda", "lazy-cuda", "cuda-parity", "cuda-lazy-parity", "profiled-cuda", "cpu"}) {
    SCOPED_TRACE(name);
    AnyBackend any(name);
    const auto there = to(any, x) * 2;  // in a lazy backend it has no memory yet
    EXPECT_EQ(to(cuda, there).to_vector(), (x * 2).to_vector());
    Autodiff<AnyBackend> around(any);
    EXPECT_EQ(to(around, there).to_vector(), (x * 2).to_vector());
  }
}

TEST_F(CopiesBetweenGpus, AHeldBackendIsFound) {
  AnyBackend from("profiled-cuda"), into("cuda");
  const auto x = from_vector(from, numbers(64), {64});
  const auto copy = to(into, x);
  EXPECT_EQ(calls_of(*from.profile(), "copy_to_host"), 0);
  EXPECT_EQ(copy.to_vector(), numbers(64));
}

TEST_F(CopiesBetweenGpus, ARecordedStepMayCopy) {
  Cuda b;
  const auto x = from_vector(b, numbers(16), {16});
  Tensor<Cuda> copy;
  const auto step = record(b, [&] { copy = to(b, x); });
  step->replay();
  EXPECT_EQ(copy.to_vector(), numbers(16));
}

TEST_F(CopiesBetweenGpus, ValuesArriveOnAnotherGpu) {
  if (cuda_device_count() < 2) GTEST_SKIP() << "needs two GPUs, this machine has " << cuda_device_count();
  Profiled<Cuda> first(0), second(1);
  const auto x = from_vector(first, numbers(1'000'003), {1'000'003});
  first.reset();
  const auto there = to(second, x);
  EXPECT_EQ(calls_of(first.profile(), "copy_to_host"), 0);
  EXPECT_EQ(there.device(), (Device{DeviceKind::cuda, 1}));
  EXPECT_EQ(there.to_vector(), numbers(1'000'003));
  EXPECT_EQ(to(first, there + 1).to_vector(), (x + 1).to_vector());
}

}  // namespace
}  // namespace ferrite
