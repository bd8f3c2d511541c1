// Finds the GPUs and describes them.
#include "ferrite/backend/cuda_device.hpp"

#include <cudnn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/cuda/check.hpp"

namespace ferrite {
namespace cuda {
namespace {

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

struct Availability {
  int count = 0;
  std::string reason;
};

const Availability& availability() {
  static const Availability found = [] {
    Availability result;
    const cudaError_t status = cudaGetDeviceCount(&result.count);
    if (status != cudaSuccess) result.count = 0;
    if (result.count == 0) {
      int driver = 0, runtime = 0;
      static_cast<void>(cudaDriverGetVersion(&driver));
      static_cast<void>(cudaRuntimeGetVersion(&runtime));
      result.reason = why_no_device(status, driver, runtime, std::getenv("CUDA_VISIBLE_DEVICES"));
    }
    static_cast<void>(cudaGetLastError());
    return result;
  }();
  return found;
}

}  // namespace

CudaDeviceInfo describe_device(int index) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index), "cuda_devices");
  const auto attribute = [&](cudaDeviceAttr name) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, name, index), "cuda_devices");
    return value;
  };
  CudaDeviceInfo info;
  info.index = index;
  info.name = properties.name;
  info.compute_major = properties.major;
  info.compute_minor = properties.minor;
  info.total_bytes = properties.totalGlobalMem;
  info.l2_cache_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  info.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
  info.multiprocessors = properties.multiProcessorCount;
  info.clock_mhz = attribute(cudaDevAttrClockRate) / 1000;
  info.memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate) / 1000;
  info.memory_bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth);
  char bus_id[32] = "";
  check(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index), "cuda_devices");
  info.pci_bus_id = bus_id;
  check(cudaDriverGetVersion(&info.driver_version), "cuda_devices");
  check(cudaRuntimeGetVersion(&info.runtime_version), "cuda_devices");
  const DeviceGuard guard(index);
  std::size_t total = 0;
  if (cudaMemGetInfo(&info.free_bytes, &total) != cudaSuccess) {
    info.free_bytes = 0;
    static_cast<void>(cudaGetLastError());
  }
  return info;
}

int device_count() noexcept { return availability().count; }
std::string why_no_device() { return availability().reason; }

std::string why_no_device(cudaError_t status, int driver, int runtime, const char* visible) {
  if (driver == 0) return "no NVIDIA driver is installed or loaded";
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver is too old: it knows CUDA {}, ferrite was built with {}; update the driver",
        version(driver), version(runtime));
  }
  if (status == cudaErrorNoDevice || status == cudaSuccess) {
    if (visible) return fmt::format("no NVIDIA GPU is visible (CUDA_VISIBLE_DEVICES='{}')", visible);
    return "this machine has no NVIDIA GPU";
  }
  return fmt::format("CUDA does not start: {} ({})", cudaGetErrorName(status), cudaGetErrorString(status));
}

}  // namespace cuda

int cuda_device_count() { return cuda::device_count(); }
std::string cuda_unavailable_reason() { return cuda::why_no_device(); }

std::vector<CudaDeviceInfo> cuda_devices() {
  std::vector<CudaDeviceInfo> devices;
  for (int index = 0; index < cuda::device_count(); ++index) devices.push_back(cuda::describe_device(index));
  return devices;
}

std::string cudnn_version() {
  const std::size_t number = cudnnGetVersion();  // 91400 is 9.14.0
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::vector<CudaLink> cuda_links() {
  std::vector<CudaLink> links;
  for (int from = 0; from < cuda::device_count(); ++from)
    for (int to = 0; to < cuda::device_count(); ++to) {
      if (from == to) continue;
      const auto attribute = [&](cudaDeviceP2PAttr name) {
        int value = 0;
        cuda::check(cudaDeviceGetP2PAttribute(&value, name, from, to), "cuda_links");
        return value;
      };
      links.push_back({from, to, attribute(cudaDevP2PAttrAccessSupported) != 0,
                       attribute(cudaDevP2PAttrNativeAtomicSupported) != 0,
                       attribute(cudaDevP2PAttrPerformanceRank)});
    }
  return links;
}

std::shared_ptr<std::byte[]> pinned_memory(std::size_t bytes) {
  if (cuda::device_count() == 0) throw DeviceError("[pinned_memory] " + cuda::why_no_device());
  void* memory = nullptr;
  cuda::check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "pinned_memory");
  return {static_cast<std::byte*>(memory), [](std::byte* m) { static_cast<void>(cudaFreeHost(m)); }};
}

}  // namespace ferrite
