// Kernels of the user on the GPU against the interpreter and Cpu: the corpus, every builtin, layouts,
// gradients, graphs, and the caches.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "../kernel/packed_test.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/backend/cuda_launch.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/launch.hpp"

namespace ferrite {
namespace {

using kernel::Kernel;

struct CudaLaunch : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    gpu = std::make_unique<Cuda>(0);
  }
  std::unique_ptr<Cuda> gpu;
};

/// Runs a kernel on the GPU on arguments in host memory.
void run_on_gpu(Cuda& gpu, const Kernel& k, const std::vector<std::int64_t>& dim, void* const* arguments,
                int block_dim, const std::vector<kernel::Value>& values) {
  std::vector<kernel::Argument<Cuda>> list;
  std::vector<Tensor<Cuda>> tensors;
  tensors.reserve(values.size());
  for (std::size_t p = 0; p < values.size(); ++p) {
    const kernel::Value& v = values[p];
    if (!v.type.is_array()) {
      list.push_back({nullptr, false, v});
      continue;
    }
    Shape shape;
    for (const std::int64_t n : v.shape) shape.push_back(n);
    if (v.type.element().is_matrix()) shape.push_back(v.type.rows);
    if (v.type.element().is_composite())
      shape.push_back(v.type.element().is_matrix() ? v.type.columns : v.type.rows);
    const auto dtype = kernel::dtype_of_elements(v.type.element());
    ASSERT_TRUE(dtype.has_value());
    tensors.push_back(
        from_bytes(gpu, {shape, *dtype}, static_cast<kernel::ArrayArgument*>(arguments[p])->data));
    list.push_back({&tensors.back(), true, {}});
  }
  kernel::launch(gpu, k, kernel::Grid(Shape(dim), block_dim), std::span<kernel::Argument<Cuda>>(list));
  std::size_t at = 0;
  for (std::size_t p = 0; p < values.size(); ++p) {
    if (!values[p].type.is_array()) continue;
    const auto bytes = to_bytes(tensors[at++]);
    std::memcpy(static_cast<kernel::ArrayArgument*>(arguments[p])->data, bytes.data(), bytes.size());
  }
}

bool fits_tensors(const kernel::Function& k) {
  for (int p = 0; p < k.parameters; ++p) {
    const kernel::Type t = k.variables[static_cast<std::size_t>(p)].type;
    if (t.is_array() && (t.kind == kernel::Type::Kind::structure || !kernel::dtype_of_elements(t.element())))
      return false;
  }
  return true;
}

void compare_module(Cuda& gpu, const kernel::Module& module, const kernel::Function& f,
                    const std::vector<std::int64_t>& dim, const std::vector<kernel::Value>& values,
                    int block_dim, double roundings) {
  if (!fits_tensors(f)) return;
  const Kernel k(module, f.name);
  const auto run = [&](const std::vector<std::int64_t>& d, void* const* arguments, int threads) {
    run_on_gpu(gpu, k, d, arguments, threads, values);
  };
  kernel::compare(module, f, run, dim, values, block_dim, roundings);
}

TEST_F(CudaLaunch, DoesWhatTheInterpreterDoesOnTheCorpus) {
  for (const auto& file : kernel::corpus_files())
    kernel::for_each_run(file, [&](const kernel::Module& module, const kernel::Function& f, const auto& dim,
                                   const auto& values, int block_dim) {
      compare_module(*gpu, module, f, dim, values, block_dim, 64);
    });
}

TEST_F(CudaLaunch, DoesWhatTheInterpreterDoesForEveryBuiltin) {
  const kernel::Module module = kernel::parse(kernel::builtin_kernels());
  std::vector<Kernel> all = Kernel::all(module);  // one compilation
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto values = kernel::builtin_arguments(module);
    const auto run = [&](const std::vector<std::int64_t>& d, void* const* arguments, int threads) {
      run_on_gpu(*gpu, all[i], d, arguments, threads, values);
    };
    // Values are f32 or less, stored as f64.
    kernel::compare(module, module.kernels[i], run, {1}, values, 256, 64 * 0x1p29);
  }
}

constexpr const char* chain = R"(import warp as wp


@wp.kernel
def chain(a: float, x: wp.array2d[float], y: wp.array2d[float], s: wp.array[float]):
    i, j = wp.tid()
    v = wp.tanh(a * x[i, j]) + x[i, j] * x[i, j]
    y[i, j] = v * v
    wp.atomic_add(s, j, v)
)";

TEST_F(CudaLaunch, IsEqualToCpuUnderParityWithGradients) {
  Autodiff<CudaParity> b;  // every launch, forward and backward, is compared with Cpu
  const Kernel k = Kernel::from_source(chain);
  Rng rng(3);
  for (const bool turned : {false, true}) {
    const auto x = parameter(randn(b, {40, 70}, rng), "x");
    auto y = zeros(b, {40, 70}), s = zeros(b, {70});
    if (turned) {
      y = permute(zeros(b, {70, 40}), {1, 0});
      k.launch(b, {40, 70}, 0.7f, flip(x, {1}), y, s);
    } else {
      k.launch(b, {40, 70}, 0.7f, x, y, s);
    }
    const auto grads = (sum(y) + sum(s * s)).backward();
    EXPECT_TRUE(grads.of(x).defined());
  }
}

TEST_F(CudaLaunch, EveryLaunchShapeGivesTheSame) {
  const Kernel k = Kernel::from_source(
      "import warp as wp\n\n\n@wp.kernel\ndef twice(x: wp.array[float], y: wp.array[float]):\n"
      "    i = wp.tid()\n    y[i] = y[i] + 2.0 * x[i]\n");
  for (const std::int64_t n : {1, 255, 257, 1 << 18, (1 << 20) + 3}) {  // the larger ones are measured
    auto x = cast(arange(*gpu, n), DType::f32), y = ones(*gpu, {n});
    k.launch(*gpu, n, x, y);
    k.launch(*gpu, n, x, y);
    const auto got = y.to_vector();
    for (std::int64_t i = 0; i < n; i += 97)
      ASSERT_EQ(got[static_cast<std::size_t>(i)], 1 + 4.0f * static_cast<float>(i)) << n;
  }
}

TEST_F(CudaLaunch, SaysInWhichBlocksItRuns) {
  const Kernel k = Kernel::from_source(
      "import warp as wp\n\n\n@wp.kernel\ndef next(x: wp.array[float]):\n    i = wp.tid()\n"
      "    x[i] = x[i] + 1.0\n");
  EXPECT_EQ(launch_blocks(*gpu, k, 0), LaunchBlocks{});
  EXPECT_EQ(launch_blocks(*gpu, k, 257), (LaunchBlocks{2, 256, 1}));
  const std::int64_t n = (1 << 20) + 3;
  auto x = zeros(*gpu, {n});
  k.launch(*gpu, n, x);
  const LaunchBlocks chosen = launch_blocks(*gpu, k, n);
  const std::int64_t covered = chosen.blocks * chosen.threads * chosen.items;
  EXPECT_GE(covered, n);
  EXPECT_LT(covered - n, chosen.threads * chosen.items);
  EXPECT_EQ(launch_blocks(*gpu, k, n), chosen);

  const Kernel blocks = Kernel::from_source(
      "import warp as wp\n\n\n@wp.kernel\ndef size(x: wp.array[int]):\n"
      "    x[wp.tid()] = wp.block_dim()\n");
  EXPECT_EQ(launch_blocks(*gpu, blocks, kernel::Grid(1024).with_block_dim(64)), (LaunchBlocks{16, 64, 1}));
}

TEST(LaunchBlocks, CountsInWords) {
  EXPECT_EQ(to_string(LaunchBlocks{1, 1, 1}), "1 block of 1 thread");
  EXPECT_EQ(to_string(LaunchBlocks{1024, 256, 4}), "1024 blocks of 256 threads, 4 elements each");
}

TEST_F(CudaLaunch, IsCapturedOncePrepared) {
  const Kernel k = Kernel::from_source(
      "import warp as wp\n\n\n@wp.kernel\ndef count(y: wp.array[int]):\n    y[wp.tid()] += 1\n");
  auto y = zeros(*gpu, {100}, DType::i32);
  EXPECT_THROW(CudaGraph::capture(*gpu, [&] { k.launch(*gpu, 100, y); }), BackendError);
  gpu->prepare(k);
  auto graph = CudaGraph::capture(*gpu, [&] { k.launch(*gpu, 100, y); });
  for (int i = 0; i < 3; ++i) graph.replay();
  EXPECT_EQ(y.to_vector<int>()[99], 3);
}

/// Kernels of one text share what was loaded, and however many there were, none has to be prepared again.
TEST_F(CudaLaunch, KernelsOfOneTextAreLoadedOnce) {
  const char* const text =
      "import warp as wp\n\n\n@wp.kernel\ndef step(y: wp.array[int]):\n    y[wp.tid()] += 2\n";
  auto y = zeros(*gpu, {100}, DType::i32);
  const Kernel first = Kernel::from_source(text);
  gpu->prepare(first);
  for (int i = 0; i < 5000; ++i) gpu->prepare(Kernel::from_source(text));
  const Kernel last = Kernel::from_source(text);
  auto graph = CudaGraph::capture(*gpu, [&] {
    first.launch(*gpu, 100, y);
    last.launch(*gpu, 100, y);
  });
  graph.replay();
  EXPECT_EQ(y.to_vector<int>()[99], 4);
}

TEST_F(CudaLaunch, SaysWhatNvrtcRefuses) {
  EXPECT_THROW(Kernel::from_source("import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[wp.uint8]):\n"
                                   "    wp.atomic_add(x, 0, wp.uint8(1))\n")
                   .cuda_source(),
               kernel::KernelError);
}

}  // namespace
}  // namespace ferrite
