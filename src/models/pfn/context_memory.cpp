#include "models/pfn/context_memory.hpp"

#include <unistd.h>

#include <algorithm>

#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::pfn::detail {

namespace {

constexpr double usual = 0x1p33;

/// What can still be had on a GPU, memory that ferrite keeps for later included.
double free_on_gpu(AnyBackend& backend) {
  double bytes = 2 * usual;
  for (const CudaDeviceInfo& gpu : cuda_devices())
    if (gpu.index == backend.device().index)
      bytes = static_cast<double>(gpu.free_bytes + backend.memory_stats().cached);
  if (const Cuda* const cuda = backend.get_if<Cuda>())
    bytes = std::min(bytes, static_cast<double>(cuda->memory_limit()) -
                                static_cast<double>(backend.memory_stats().in_use));
  return bytes;
}

}  // namespace

double usual_context_bytes(AnyBackend& backend, double needed) {
  if (backend.device().kind != DeviceKind::cuda) {
    const double memory =
        static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
    return std::min(usual, memory / 2);
  }
  // To ask a GPU takes longer than a small fit.
  return needed <= 0x1p30 ? usual : std::min(usual, std::max(free_on_gpu(backend), 0.0) / 2);
}

}  // namespace ferrite::pfn::detail
