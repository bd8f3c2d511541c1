// Cuda in a build without CUDA: programs that name it link, and its constructor says what is missing. Nobody
// gets further, so the other members only have to exist.
#include "ferrite/backend/cuda.hpp"

#include <fmt/format.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_launch.hpp"
#include "ferrite/decorators/profiled.hpp"

namespace ferrite {

namespace {
[[noreturn]] void throw_absent() { throw DeviceError("[cuda] " + cuda_unavailable_reason()); }
}  // namespace

Cuda::Cuda(int device) : index_(device), context_(nullptr) {
  throw DeviceError(fmt::format("[cuda] cuda:{}: {}", device, cuda_unavailable_reason()));
}

Array Cuda::allocate(const Meta&) { throw_absent(); }
Array Cuda::allocate(const Meta&, std::string_view) { throw_absent(); }
void Cuda::copy_from_host(const Array&, const void*) { throw_absent(); }
void Cuda::copy_to_host(const Array&, void*) { throw_absent(); }
Array Cuda::copy_from_device(const Array&) { throw_absent(); }
void Cuda::synchronize() { throw_absent(); }
bool Cuda::is_capturing() const { throw_absent(); }
MemoryStats Cuda::memory_stats() const { throw_absent(); }
std::string Cuda::memory_report() const { throw_absent(); }
std::string Cuda::memory_report_json() const { throw_absent(); }
void Cuda::set_memory_limit(std::size_t) { throw_absent(); }
std::size_t Cuda::memory_limit() const { throw_absent(); }
void Cuda::release_cache() { throw_absent(); }
std::string Cuda::describe() const { throw_absent(); }
std::vector<std::string> Cuda::warnings() const { throw_absent(); }
Ceilings Cuda::ceilings() const { throw_absent(); }
BackendFacts Cuda::facts() const { throw_absent(); }
void Cuda::launch_kernel(const kernel::Kernel&, const kernel::Grid&, void* const*) { throw_absent(); }
void Cuda::prepare(const kernel::Kernel&, int) { throw_absent(); }
LaunchBlocks launch_blocks(Cuda&, const kernel::Kernel&, const kernel::Grid&) { throw_absent(); }

Stopwatch<Cuda>::Stopwatch(Cuda& cuda) : context_(cuda.context()), outer_(nullptr) { throw_absent(); }
Stopwatch<Cuda>::~Stopwatch() = default;
TimeSpan Stopwatch<Cuda>::stop() { throw_absent(); }
std::unique_ptr<PendingTime> Stopwatch<Cuda>::stop_later() { throw_absent(); }

}  // namespace ferrite
