// Kernels of the user: a chain of eight elementwise ops as one kernel, what a launch costs the host, and the
// time until a kernel can be launched: compiled by NVRTC, or loaded from the cache on disk.
#include <unistd.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/tensor/launch.hpp"
#include "kernel/compile/nvrtc.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

constexpr const char* chain = R"(import warp as wp

@wp.kernel
def chain(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = x[i] + 0.5
    v = v * 1.5
    v = wp.exp(-v * v)
    v = v - 0.25
    v = wp.tanh(v)
    v = v * 0.75
    y[i] = wp.max(v, 0.125)
)";

Measurement run_chain(std::int64_t n, Clock clock) {
  Cuda cuda;
  Rng rng(1);
  const auto kernel = kernel::Kernel::from_source(chain);
  auto x = randn(cuda, {n}, rng), y = zeros(cuda, {n});
  Measurement m = time_calls(
      cuda, [&] { kernel.launch(cuda, n, x, y); }, clock);
  m.bytes = 8.0 * static_cast<double>(n);
  return m;
}

/// The median of kernels that no process had before: they differ in a constant.
Measurement compile() {
  Cuda cuda;
  std::vector<double> times;
  for (int i = 0; i < 11; ++i) {
    std::string text = chain;
    text.replace(text.find("0.125"), 5, "0.1" + std::to_string(1000 + i) + std::to_string(::getpid()));
    const auto start = std::chrono::steady_clock::now();
    cuda.prepare(kernel::Kernel::from_source(text));
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0], 0, 0, {}};
}

/// The same kernels in other processes, which find them on disk.
Measurement load() {
  Cuda cuda;
  std::vector<double> times;
  for (int i = 0; i < 11; ++i) {
    std::string text = chain;
    text.replace(text.find("0.125"), 5, "0.2" + std::to_string(1000 + i));
    const std::string source = kernel::Kernel::from_source(text).cuda_source();
    const CudaDeviceInfo gpu = cuda_devices()[0];
    kernel::cached_cubin(source, gpu.compute_major * 10 + gpu.compute_minor,
                         kernel::BinaryCache::from_environment());
    const auto start = std::chrono::steady_clock::now();
    cuda.prepare(kernel::Kernel::from_source(text));  // unknown to this process, known to the disk
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0], 0, 0, {}};
}

}  // namespace

void add_launch(Suite& suite) {
  suite.add("launch/chain8/f32/256M", [] { return run_chain(1 << 28, Clock::device); });
  suite.add("launch/chain8/f32/1M", [] { return run_chain(1 << 20, Clock::device); });
  suite.add("call/launch/chain8/f32/1K", [] { return run_chain(1000, Clock::wall); });
  suite.add("launch/compile", compile);
  suite.add("launch/load", load);
}

}  // namespace ferrite::bench
