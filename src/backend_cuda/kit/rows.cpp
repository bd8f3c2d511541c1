#include "backend_cuda/kit/rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>
#include <vector>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {
namespace {

/// The smallest power of two that is at least n, or some beyond most_row_threads.
int covering(std::int64_t n) {
  return static_cast<int>(
      std::bit_ceil(static_cast<unsigned>(std::min<std::int64_t>(n, most_row_threads + 1))));
}

std::optional<RowArray> rows_in_place(const Array& x) {
  const std::int64_t length = x.shape().back();
  std::int64_t count = 1;
  for (int i = 0; i + 1 < x.shape().rank(); ++i) count *= x.shape()[i];
  if (x.layout().is_contiguous()) return RowArray{x, count, length, length};
  const auto view = x.layout().reshape({count, length});
  if (!view || (length > 1 && view->strides[1] != 1)) return std::nullopt;
  return RowArray{x, count, length, view->strides[0]};
}

/// Rows and Ring wait for earlier kernels.
LaunchConfig early_launch(const Call& call, std::int64_t blocks, int block, std::int64_t shared_bytes = 0,
                          int parts = 1) {
  return {call.stream(), dim3(static_cast<unsigned>(blocks)), block, shared_bytes, parts, Start::early};
}

/// For each of the blocks that a multiprocessor is to hold.
std::int64_t most_shared_bytes(const Call& call, int blocks) {
  constexpr std::int64_t control_bytes = 2816;  // RingControl, checked in ring.cuh
  const cudaDeviceProp& has = call.properties();
  return static_cast<std::int64_t>(blocks == 1 ? has.sharedMemPerBlockOptin
                                               : has.sharedMemPerMultiprocessor / blocks -
                                                     has.reservedSharedMemPerBlock) -
         control_bytes;
}

/// How many clusters of `parts` blocks run at once, queried once for every kernel, GPU and size. Clusters
/// stay within groups of multiprocessors, which differ in size: only the driver knows.
int clusters_at_once(const Call& call, const void* kernel, int block, std::int64_t shared_bytes, int parts) {
  struct Known {
    const void* kernel;
    int device, parts;
    std::int64_t shared_bytes;
    int clusters;
  };
  static std::mutex lock;
  static std::vector<Known> known;
  const int device = call.context().index();
  if (parts == 1) shared_bytes = 0;  // one block for each multiprocessor, whatever it holds
  const auto is_same = [&](const Known& k) {
    return k.kernel == kernel && k.device == device && k.parts == parts && k.shared_bytes == shared_bytes;
  };
  const std::lock_guard guard(lock);
  const auto found = std::find_if(known.begin(), known.end(), is_same);
  if (found != known.end()) return found->clusters;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(most_shared_bytes(call, 1))),
        call.op());
  int clusters = call.properties().multiProcessorCount;
  if (parts > 1) {
    const LaunchConfig config = early_launch(call, parts, block, shared_bytes, parts);
    check(cudaOccupancyMaxActiveClusters(&clusters, kernel, config.get()), call.op());
  }
  known.push_back({kernel, device, parts, shared_bytes, clusters});
  return clusters;
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

RowPlan::RowPlan(const Call& call, DType dtype, std::int64_t rows, std::int64_t length, int lanes)
    : call_(&call), lanes_(lanes) {
  const std::int64_t items = row_items(lanes, size_of(dtype)), packs = length / lanes;
  // As few threads as can hold the row, because they must exchange results; but not so few that neighbouring
  // threads read far apart.
  const int wanted = std::max(covering(divide_up(packs, items)),
                              static_cast<int>(std::min<std::int64_t>(covering(packs), 8)));
  const int threads = std::min(wanted, most_row_threads);
  const std::int64_t chunks = std::max<std::int64_t>(divide_up(packs, threads * items), 1);
  shape_.rows = rows;
  shape_.packs = packs;
  shape_.chunks = static_cast<std::int32_t>(chunks);
  shape_.chunk_packs = static_cast<std::int32_t>(divide_up(packs, chunks));
  shape_.threads_shift = std::countr_zero(static_cast<unsigned>(threads));

  // Smaller blocks if there are not enough rows for all multiprocessors.
  block_ = std::max(threads, 256);
  const int processors = call.properties().multiProcessorCount;
  while (block_ > std::max(threads, 64) && divide_up(rows, block_ / threads) < processors) block_ /= 2;
}

void RowPlan::launch_untyped(const void* kernel, void** parameters) const {
  const std::int64_t blocks = divide_up(shape_.rows, block_ >> shape_.threads_shift);
  if (blocks == 0) return;
  const LaunchConfig config = early_launch(*call_, blocks, block_);
  check(cudaLaunchKernelExC(config.get(), kernel, parameters), call_->op());
}

std::optional<RingPlan> RingPlan::make(const Call& call, DType dtype, std::int64_t rows, std::int64_t length,
                                       int lanes, const RingNeeds& needs) {
  if (!runs_hopper_code() || length > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  RingPlan plan;
  plan.call_ = &call;
  plan.lanes_ = lanes;
  plan.shape_.rows = rows;
  plan.shape_.length = static_cast<std::int32_t>(length);
  // More blocks per row if there are so few rows that other blocks would be idle.
  const int processors = call.properties().multiProcessorCount;
  constexpr std::int64_t worth_sharing = 4096;
  std::int64_t parts = 1;
  while (parts < most_ring_parts && rows * parts * 2 <= processors && length / (parts * 2) >= worth_sharing)
    parts *= 2;
  for (int blocks = needs.blocks; blocks > 0; blocks /= 2)
    for (std::int64_t p = parts; p <= most_ring_parts; p *= 2)
      if (plan.try_parts(p, p > 1 ? blocks : 1, static_cast<std::int64_t>(size_of(dtype)), needs))
        return plan;
  return std::nullopt;
}

bool RingPlan::try_parts(std::int64_t parts, int blocks, std::int64_t element_bytes, const RingNeeds& needs) {
  const int items =
      needs.most_packs > 0 ? needs.most_packs : row_items(lanes_, static_cast<std::size_t>(element_bytes));
  const std::int64_t part_packs = divide_up(shape_.length / lanes_, parts);
  const std::int64_t part_length = part_packs * lanes_;
  const int wanted = std::max(covering(divide_up(part_packs, items)), 32);
  const int most_threads = most_row_threads / blocks;
  if (needs.most_packs > 0 && wanted > most_threads) return false;
  // The blocks of a cluster communicate through their first threads: one team each.
  const int threads = parts > 1 ? most_threads : std::min(wanted, most_threads);
  // An unaligned row also loads its neighbours in the first and last 16 bytes.
  const std::int64_t stage_bytes = round_up(part_length * element_bytes, 16) + (lanes_ > 1 ? 0 : 16);
  const std::int64_t beside = round_up(part_length * needs.bytes_per_element, 16);
  const std::int64_t room = most_shared_bytes(*call_, blocks) - beside;
  teams_ = most_threads / threads;
  while (teams_ > 1 && teams_ * needs.inputs * stage_bytes * 2 > room) teams_ /= 2;
  const std::int64_t stages =
      std::min<std::int64_t>(room / (teams_ * needs.inputs * stage_bytes), most_ring_stages);
  if (stages < 2) return false;

  shape_.part_length = static_cast<std::int32_t>(part_length);
  shape_.parts = static_cast<std::int32_t>(parts);
  shape_.threads_shift = std::countr_zero(static_cast<unsigned>(threads));
  shape_.stages = static_cast<std::int32_t>(stages);
  shape_.stage_bytes = static_cast<std::int32_t>(stage_bytes);
  shared_bytes_ = teams_ * stages * needs.inputs * stage_bytes + beside;
  return true;
}

void RingPlan::fit_untyped(const void* kernel) {
  const int block = teams_ << shape_.threads_shift;
  const int clusters = clusters_at_once(*call_, kernel, block, shared_bytes_, shape_.parts);
  blocks_ = std::min<std::int64_t>(divide_up(shape_.rows, teams_), std::max(clusters, 1)) * shape_.parts;
}

void RingPlan::launch_untyped(const void* kernel, void** parameters) const {
  if (blocks_ == 0) return;
  const LaunchConfig config =
      early_launch(*call_, blocks_, teams_ << shape_.threads_shift, shared_bytes_, shape_.parts);
  check(cudaLaunchKernelExC(config.get(), kernel, parameters), call_->op());
}

}  // namespace ferrite::cuda
