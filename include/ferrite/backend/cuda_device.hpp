// Lists the CUDA GPUs. Needs no CUDA header. Without a GPU it still works, and says why there is none.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite {

struct CudaDeviceInfo {
  int index = 0;
  std::string name;
  int compute_major = 0, compute_minor = 0;
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;  // 0 where the GPU refuses to say (taken by another process)
  std::size_t l2_cache_bytes = 0;
  std::size_t shared_bytes_per_block = 0;  // at most, when asked for
  int multiprocessors = 0;
  int clock_mhz = 0;
  int memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  double bandwidth() const {  // bytes per second by the data sheet: two transfers per clock
    return 2e6 * memory_clock_mhz * memory_bus_bits / 8;
  }
  std::string pci_bus_id;   // "0000:1B:00.0"
  int driver_version = 0;   // the newest CUDA the driver knows: 13000 is 13.0
  int runtime_version = 0;  // the CUDA ferrite was built with
};

/// The number of usable GPUs; never throws.
FERRITE_API int cuda_device_count();
/// Why cuda_device_count() is 0, in one sentence; empty if it is not.
FERRITE_API std::string cuda_unavailable_reason();
/// Every usable GPU. Starts CUDA on each, which takes some 0.1 s. Throws BackendError if a GPU fails.
FERRITE_API std::vector<CudaDeviceInfo> cuda_devices();

/// The version of the cuDNN that ferrite loads, "9.14.0"; needs no GPU. Throws BackendError that says why
/// there is none, and DeviceError in a build without CUDA.
FERRITE_API std::string cudnn_version();

/// How two GPUs of this machine reach each other's memory.
struct CudaLink {
  int from = 0, to = 0;
  bool peer_access = false;  // directly; otherwise copies go through the host
  bool atomics = false;      // also on the other's memory: NVLink has them, PCIe does not
  int rank = 0;              // of its speed among the links of `from`; 0 is the fastest
};
/// Of every pair of GPUs, both ways. Throws BackendError if a GPU fails.
FERRITE_API std::vector<CudaLink> cuda_links();

/// Host memory that GPUs access directly, aligned to a page. A GPU copies large parts of it (over 16 MiB)
/// directly; copies of other memory go through such memory piece by piece. It is slow to allocate: keep it.
/// Throws DeviceError if there is no GPU, and OutOfMemory.
FERRITE_API std::shared_ptr<std::byte[]> pinned_memory(std::size_t bytes);

}  // namespace ferrite
