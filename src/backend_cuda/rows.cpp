#include "backend_cuda/rows.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/spin.hpp"

namespace ferrite::cuda {
namespace {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::optional<RowArray> rows_in_place(const Array& x) {
  const std::int64_t length = x.shape().back();
  std::int64_t count = 1;
  for (int i = 0; i + 1 < x.shape().rank(); ++i) count *= x.shape()[i];
  if (x.layout().is_contiguous()) return RowArray{x, count, length, length};
  const auto view = x.layout().reshape({count, length});
  if (!view || (length > 1 && view->strides[1] != 1)) return std::nullopt;
  return RowArray{x, count, length, view->strides[0]};
}

struct LaunchConfig {
  cudaLaunchAttribute cluster;
  cudaLaunchConfig_t config{};

  LaunchConfig(const Call& call, std::int64_t blocks, int block, std::int64_t shared_bytes, int parts) {
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(parts), 1, 1};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(block));
    config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
    config.stream = call.stream();
    config.attrs = &cluster;
    config.numAttrs = parts > 1 ? 1 : 0;
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;
};

/// Once for every kernel and GPU: blocks may have more than 48 KB of shared memory, and the multiprocessors
/// have as much of it as they can, so that several blocks fit.
void allow_shared_memory(const Call& call, const void* kernel) {
  static SpinLock lock;
  static std::vector<std::pair<const void*, int>> allowed;
  const std::pair<const void*, int> key{kernel, call.context().index()};
  const std::lock_guard guard(lock);
  if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) return;
  // What a kernel exchanges between warps (up to 3 KB) counts too.
  const int most = static_cast<int>(call.context().properties().sharedMemPerBlockOptin) - 4 * 1024;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), call.op());
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared),
        call.op());
  allowed.push_back(key);
}

}  // namespace

RowArray rows_of(Cuda& cuda, const Array& x, DType dtype) {
  if (x.dtype() == dtype)
    if (const auto rows = rows_in_place(x)) return *rows;
  return *rows_in_place(dense(cuda, x, dtype));
}

int row_lanes(DType dtype, std::int64_t length, std::initializer_list<RowPlace> places) {
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  const auto is_aligned = [&](const RowPlace& place) {
    return reinterpret_cast<std::uintptr_t>(place.data) % 16 == 0 && place.stride * bytes % 16 == 0;
  };
  const bool aligned = length * bytes % 16 == 0 && std::all_of(places.begin(), places.end(), is_aligned);
  return aligned ? static_cast<int>(16 / bytes) : 1;
}

RowPlan::RowPlan(const Call& call, DType dtype, std::int64_t rows, std::int64_t length, int lanes, int parts)
    : call_(&call), lanes_(lanes) {
  const std::int64_t items = row_items(lanes, size_of(dtype)), packs = length / lanes;

  // As few threads as can hold the row, because what they find they have to tell each other; but not so few
  // that neighbouring threads read far apart.
  const auto covering = [](std::int64_t n) { return std::bit_ceil(static_cast<std::uint64_t>(n)); };
  const std::uint64_t wanted =
      std::max(covering(divide_up(packs, items)), std::min<std::uint64_t>(covering(packs), 8));
  const int threads = static_cast<int>(std::min<std::uint64_t>(wanted, most_threads));
  shape_.parts = 1;
  while (shape_.parts < parts && shape_.parts * threads * items < packs) shape_.parts *= 2;

  const std::int64_t chunks = std::max<std::int64_t>(divide_up(packs, shape_.parts * threads * items), 1);
  shape_.rows = rows;
  shape_.length = length;
  shape_.packs = packs;
  shape_.chunks = static_cast<std::int32_t>(chunks);
  shape_.chunk_packs = static_cast<std::int32_t>(divide_up(packs, chunks));
  shape_.threads_shift = std::countr_zero(static_cast<unsigned>(threads));
  if (chunks == 1) slots_ = divide_up(packs, shape_.parts * threads) * threads;

  // Smaller blocks where there are not enough rows for all multiprocessors.
  block_ = std::max(threads, 256);
  const int processors = call.context().properties().multiProcessorCount;
  while (block_ > std::max(threads, 64) && divide_up(rows, teams_in_block()) < processors) block_ /= 2;
}

void RowPlan::fit_untyped(const void* kernel, int threads_per_sm, std::int64_t shared_bytes) {
  const cudaDeviceProp& gpu = call_->context().properties();
  shared_bytes_ = shared_bytes;
  if (shared_bytes > 8 * 1024) allow_shared_memory(*call_, kernel);
  const std::int64_t by_memory =
      static_cast<std::int64_t>(gpu.sharedMemPerMultiprocessor) / (shared_bytes + 4 * 1024);
  std::int64_t resident =
      gpu.multiProcessorCount *
      std::max<std::int64_t>(std::min<std::int64_t>(threads_per_sm / block_, by_memory), 1);
  if (shape_.parts > 1 && shape_.rows * shape_.parts > gpu.multiProcessorCount / 2) {
    // Clusters lie within groups of multiprocessors, not all of one size: only the driver knows how many fit.
    const LaunchConfig launch(*call_, shape_.parts, block_, shared_bytes, shape_.parts);
    int clusters = 0;
    check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config), call_->op());
    resident = std::max(clusters, 1);
  }
  blocks_ = std::min(divide_up(shape_.rows, teams_in_block()), resident) * shape_.parts;
}

void RowPlan::launch_untyped(const void* kernel, void** parameters) const {
  if (blocks_ == 0) return;
  const LaunchConfig launch(*call_, blocks_, block_, shared_bytes_, shape_.parts);
  check(cudaLaunchKernelExC(&launch.config, kernel, parameters), call_->op());
}

}  // namespace ferrite::cuda
