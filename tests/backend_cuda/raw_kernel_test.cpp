// Kernels in CUDA C++: what they compute, and what is said before CUDA would go wrong.
#include "ferrite/cuda/raw_kernel.hpp"

#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/kernel/error.hpp"
#include "ferrite/stacks.hpp"
#include "messages.hpp"

namespace ferrite {
namespace {

using testing::expect_contains;
using testing::message_of;

const char* const scale_text = R"(
extern "C" __global__ void scale(const float* x, float* y, float a, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
})";

TEST(RawKernelText, IsCompiledWithoutAGpu) {
  const auto compiled = [](const RawKernel& kernel) -> std::string {
    try {
      return kernel.ptx(90);
    } catch (const BackendError&) {  // no NVRTC
      return {};
    }
  };
  const std::string ptx = compiled(RawKernel::from_source(scale_text, "scale"));
  if (ptx.empty()) GTEST_SKIP() << "NVRTC is not installed";
  expect_contains(ptx, ".entry scale(");
  const char* const sized = "extern \"C\" __global__ void fill(int* x) { x[threadIdx.x] = SIZE; }";
  expect_contains(compiled(RawKernel::from_source(sized, "fill", {"-DSIZE=1234567"})), "1234567");
  const char* const modern =
      "template <class T> concept Any = true;\ntemplate <Any T> __device__ T same(T x) { return x; }\n"
      "extern \"C\" __global__ void k(float* x) { *x = same(*x); }";
  expect_contains(compiled(RawKernel::from_source(modern, "k", {"--std=c++20"})), ".entry k(");
  const char* const headers =
      "#include <cuda_bf16.h>\n#include <cooperative_groups.h>\n"
      "extern \"C\" __global__ void k(__nv_bfloat16* x) {\n"
      "  x[cooperative_groups::this_grid().thread_rank()] = __float2bfloat16(1.0f);\n}";
  expect_contains(compiled(RawKernel::from_source(headers, "k")), ".entry k(");
}

TEST(RawKernelText, ErrorsShowTheLogOfTheCompiler) {
  const auto refused = [](const RawKernel& kernel) {
    try {
      kernel.ptx();
    } catch (const BackendError& e) {
      return std::string();
    } catch (const kernel::KernelError& e) {
      return std::string(e.what());
    }
    return std::string("compiled");
  };
  const std::string log = refused(RawKernel::from_source(
      "extern \"C\" __global__ void bad(float* x) {\n  x[0] = no_such_name;\n}", "bad"));
  if (log.empty()) GTEST_SKIP() << "NVRTC is not installed";
  expect_contains(log, "bad.cu(2): error: identifier \"no_such_name\" is undefined");
  expect_contains(refused(RawKernel::from_source(scale_text, "scale", {"--no-such-option"})),
                  "no-such-option");
  expect_contains(message_of<ValueError>([] { RawKernel().ptx(); }), "make one by from_source");
}

TEST(RawGrid, CoversAllElements) {
  EXPECT_EQ(RawGrid::over(1000).blocks.x, 4);
  EXPECT_EQ(RawGrid::over(1024, 128).blocks.x, 8);
  EXPECT_EQ(RawGrid::over(0).blocks.x, 0);
}

struct CudaRawKernel : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    gpu = std::make_unique<Cuda>(0);
  }
  std::unique_ptr<Cuda> gpu;
  const RawKernel scale = RawKernel::from_source(scale_text, "scale");
};

TEST_F(CudaRawKernel, ComputesOnTensors) {
  for (const std::int64_t n : {0, 1, 255, 256, 100'003}) {
    const auto x = cast(arange(*gpu, n), DType::f32);
    auto y = zeros(*gpu, {n});
    scale.launch(*gpu, RawGrid::over(n), x, y, 0.5f, n);
    const auto got = (y + 1).to_vector();  // in the order of the ops
    for (std::int64_t i = 0; i < n; i += 61)
      ASSERT_EQ(got[static_cast<std::size_t>(i)], 1 + 0.5f * static_cast<float>(i)) << n;
  }
}

TEST_F(CudaRawKernel, TakesAllKindsOfArguments) {
  struct Pair {
    double a;
    int b;
  };
  const auto kernel = RawKernel::from_source(
      "#include <cuda_fp16.h>\nstruct Pair { double a; int b; };\n"
      "extern \"C\" __global__ void kinds(double* out, const __half* h, Pair p, bool flag, short s,\n"
      "                                 unsigned long long big, const double* pointer) {\n"
      "  out[0] = __half2float(h[1]); out[1] = p.a; out[2] = p.b; out[3] = flag; out[4] = s;\n"
      "  out[5] = double(big); out[6] = pointer[2];\n}",
      "kinds");
  auto out = zeros(*gpu, {7}, DType::f64);
  const auto h = cast(from_vector(*gpu, std::vector<float>{1, 2.5f}), DType::f16);
  const auto d = from_vector(*gpu, std::vector<double>{7, 8, 9});
  const double* const address = d.primitive().data<double>();
  kernel.launch(*gpu, {{1}, {1}}, out, h, Pair{0.25, -3}, true, short{-4}, 1ull << 40, address);
  EXPECT_EQ(out.to_vector<double>(), (std::vector<double>{2.5, 0.25, -3, 1, -4, 0x1p40, 9}));
}

TEST_F(CudaRawKernel, HasBlocksInThreeAxesAndSharedMemory) {
  const auto kernel = RawKernel::from_source(
      "extern \"C\" __global__ void place(int* out, int last) {\n  extern __shared__ int shared[];\n"
      "  const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);\n"
      "  if (t == 0) shared[last] = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n"
      "  __syncthreads();\n"
      "  const int threads = blockDim.x * blockDim.y * blockDim.z;\n"
      "  out[shared[last] * threads + t] = shared[last] * threads + t + 1;\n}",
      "place");
  const auto most = static_cast<std::int64_t>(cuda_devices()[0].shared_bytes_per_block);
  for (const std::int64_t bytes : {std::int64_t{1024}, most}) {  // the second beyond what every block has
    auto out = zeros(*gpu, {24 * 64}, DType::i32);
    const RawGrid grid{{2, 3, 4}, {4, 8, 2}, bytes};
    kernel.launch(*gpu, grid, out, static_cast<int>(bytes / 4 - 1));
    const auto got = out.to_vector<int>();
    for (int i = 0; i < 24 * 64; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], i + 1) << bytes;
  }
}

TEST_F(CudaRawKernel, SaysWhichArgumentIsWrong) {
  const std::int64_t n = 6;
  const auto x = ones(*gpu, {2, 3});
  auto y = zeros(*gpu, {2, 3});
  const RawGrid grid = RawGrid::over(n);
  expect_contains(message_of<ValueError>([&] { scale.launch(*gpu, grid, x, y, 2.0f); }),
                  "[scale] 3 arguments: the kernel has 4 parameters");
  expect_contains(message_of<ValueError>([&] { scale.launch(*gpu, grid, x, y, 2.0, n); }),
                  "argument 3 is a value of 8 bytes, and the kernel's parameter has 4");
  expect_contains(message_of<ValueError>([&] { scale.launch(*gpu, grid, x, 2.0f, y, n); }),
                  "argument 2 is a value of 4 bytes, and the kernel's parameter has 8");
  expect_contains(message_of<ValueError>([&] { scale.launch(*gpu, grid, x, y, y, n); }),
                  "argument 3 is a tensor, a pointer of 8 bytes");
  expect_contains(message_of<ShapeError>([&] { scale.launch(*gpu, grid, transpose(x, 0, 1), y, 2.0f, n); }),
                  "argument 1, f32[3, 2], is not dense");
  expect_contains(message_of<ValueError>([&] { scale.launch(*gpu, grid, Tensor<Cuda>(), y, 2.0f, n); }),
                  "argument 1 is a tensor without data");
  Cpu cpu;
  const auto host = ones(cpu, {2, 3});
  expect_contains(message_of<DeviceError>([&] { scale.launch(*gpu, grid, host.primitive(), y, 2.0f, n); }),
                  "argument 1 is on cpu, and the launch on cuda:0");
  scale.launch(*gpu, grid, x, y, 2.0f, n);  // none of it did harm
  EXPECT_EQ(y.to_vector(), std::vector<float>(6, 2.0f));
}

TEST_F(CudaRawKernel, SaysWhatIsWrongWithTheGridOrTheText) {
  const auto x = ones(*gpu, {4});
  auto y = zeros(*gpu, {4});
  const auto launch = [&](const RawGrid& grid) {
    return message_of<ValueError>([&] { scale.launch(*gpu, grid, x, y, 2.0f, std::int64_t{4}); });
  };
  expect_contains(launch({{1}, {2048}}), "[scale] 2048 threads along x: must be 1 to 1024");
  expect_contains(launch({{1}, {64, 32}}), "blocks of 2048 threads: at most 1024");
  expect_contains(launch({{-1}, {32}}), "-1 blocks along x");
  expect_contains(launch({{1, 70000}, {32}}), "70000 blocks along y: must be 0 to 65535");
  expect_contains(launch(RawGrid::over(4).with_shared_bytes(1 << 20)), "1048576 bytes of shared memory");
  expect_contains(message_of<ValueError>([&] { RawKernel::from_source(scale_text, "scales").prepare(*gpu); }),
                  "declare it as extern \"C\" __global__ void scales(...)");
  expect_contains(
      message_of<kernel::KernelError>([&] { RawKernel::from_source("not CUDA", "k").prepare(*gpu); }),
      "k.cu(1): error");
}

TEST_F(CudaRawKernel, IsCapturedOncePrepared) {
  const auto count =
      RawKernel::from_source("extern \"C\" __global__ void count(int* y) { y[threadIdx.x] += 1; }", "count");
  auto y = zeros(*gpu, {64}, DType::i32);
  const RawGrid grid = RawGrid::over(64, 64);
  EXPECT_THROW(CudaGraph::capture(*gpu, [&] { count.launch(*gpu, grid, y); }), BackendError);
  count.prepare(*gpu);
  auto graph = CudaGraph::capture(*gpu, [&] { count.launch(*gpu, grid, y); });
  for (int i = 0; i < 3; ++i) graph.replay();
  EXPECT_EQ(y.to_vector<int>()[63], 3);
}

TEST_F(CudaRawKernel, ATensorThatIsNotConstCountsAsChanged) {
  const auto x = ones(*gpu, {4});
  auto y = zeros(*gpu, {4});
  const auto version = [](const Tensor<Cuda>& t) { return t.primitive().buffer()->version(); };
  const auto before_x = version(x), before_y = version(y);
  scale.launch(*gpu, RawGrid::over(4), x, y, 2.0f, std::int64_t{4});
  EXPECT_EQ(version(x), before_x);
  EXPECT_NE(version(y), before_y);
}

}  // namespace
}  // namespace ferrite
