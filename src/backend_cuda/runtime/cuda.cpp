// The Cuda backend's memory and host copies, and the faults that kernels report.
#include "ferrite/backend/cuda.hpp"

#include <fmt/format.h>

#include <atomic>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/backend/concept.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite {

static_assert(check_backend<Cuda>());

namespace cuda {

IndexFault* index_fault(DeviceContext& context) {
  // One per GPU, in pages that both host and GPU can access, so that the host checks without a copy.
  constexpr int most_devices = 64;
  static std::atomic<IndexFault*> faults[most_devices] = {};
  std::atomic<IndexFault*>& fault = faults[context.index() % most_devices];
  if (IndexFault* known = fault.load(std::memory_order_acquire)) return known;
  const DeviceGuard guard(context.index());
  IndexFault* fresh = nullptr;
  check(cudaHostAlloc(reinterpret_cast<void**>(&fresh), sizeof(IndexFault),
                      cudaHostAllocMapped | cudaHostAllocPortable),
        "index fault");
  *fresh = {};
  IndexFault* expected = nullptr;
  if (fault.compare_exchange_strong(expected, fresh)) return fresh;
  static_cast<void>(cudaFreeHost(fresh));
  return expected;
}

std::string describe(const IndexFault& fault) {
  const std::string_view op(reinterpret_cast<const char*>(static_cast<std::uintptr_t>(fault.op)),
                            static_cast<std::size_t>(fault.op_length));
  const auto is = [&](std::string_view name) { return op == name || op == std::string(name) + "_backward"; };
  std::string_view index = "index", range = "an axis of length {}";
  if (op.starts_with("softmax_cross_entropy") || is("linear_cross_entropy"))
    index = "target", range = "{} classes";
  else if (is("embedding"))
    index = "id", range = "a table of {} rows";
  else if (is("max_pool2d"))
    range = "planes of {} elements";
  const std::string place = fault.position > 0 ? fmt::format(" at position {}", fault.position - 1) : "";
  return fmt::format("[{}] {} {}{} is out of range for {}", op, index, fault.index, place,
                     fmt::format(fmt::runtime(range), fault.extent));
}

namespace {

/// After waiting for the GPU: throws the fault that a kernel reported.
void throw_faults(DeviceContext& context) {
  IndexFault* const fault = index_fault(context);
  if (std::atomic_ref(fault->op).load(std::memory_order_acquire) == 0) return;
  const IndexFault seen = *fault;
  *fault = {};
  throw ValueError(describe(seen));
}

}  // namespace
}  // namespace cuda

Cuda::Cuda(int device) : index_(device), context_(&cuda::DeviceContext::of(device)) {
  cuda::index_fault(*context_);  // now, not in a capture
}

Array Cuda::allocate(const Meta& meta) {
  return {context_->allocate(meta.bytes()), Layout::contiguous(meta.shape), meta.dtype};
}

Array Cuda::allocate(const Meta& meta, std::string_view op) {
  const cuda::OpScope scope(op);
  return allocate(meta);
}

void Cuda::copy_from_host(const Array& array, const void* source) {
  const cuda::OpScope scope("copy_from_host");
  const Array target = array.layout().is_contiguous() ? array : allocate(array.meta());
  context_->copy_from_host(target.data(), source, array.meta().bytes());
  if (!array.layout().is_contiguous()) cuda::copy_into(*this, target, array);
}

void Cuda::copy_to_host(const Array& array, void* target) {
  const cuda::OpScope scope("copy_to_host");
  const Array source = cuda::dense(*this, array);
  context_->copy_to_host(target, source.data(), array.meta().bytes());
  cuda::throw_faults(*context_);
}

Array Cuda::copy_from_device(const Array& array) {
  if (array.device().kind != DeviceKind::cuda)
    throw DeviceError(
        fmt::format("[copy_from_device] an array on {}: must be on a GPU; copy_from_host takes "
                    "host memory",
                    to_string(array.device())));
  const cuda::OpScope scope("copy_from_device");
  Cuda other(array.device().index);
  const Array source = cuda::dense(other, array);
  if (source.data() != array.data() && source.device() == device()) return source;  // a copy already
  const Array copy = allocate(array.meta());
  if (source.device() == device())
    context_->copy_on_device(copy.data(), source.data(), array.meta().bytes());
  else
    context_->copy_from_device(copy.data(), *other.context_, source.data(), array.meta().bytes());
  return copy;
}

void Cuda::synchronize() {
  const cuda::OpScope scope("synchronize");
  context_->synchronize();
  cuda::throw_faults(*context_);
}

bool Cuda::is_capturing() const { return context_->is_capturing(); }
MemoryStats Cuda::memory_stats() const { return context_->common_pool().stats(); }
std::string Cuda::memory_report() const { return context_->common_pool().memory_report(); }
std::string Cuda::memory_report_json() const { return context_->common_pool().memory_report_json(); }
void Cuda::set_memory_limit(std::size_t bytes) { context_->common_pool().set_limit(bytes); }
std::size_t Cuda::memory_limit() const { return context_->common_pool().limit(); }
void Cuda::release_cache() { context_->common_pool().release_cache(); }

std::string Cuda::describe() const {
  return fmt::format("{} ({})", to_string(device()), context_->properties().name);
}

}  // namespace ferrite
