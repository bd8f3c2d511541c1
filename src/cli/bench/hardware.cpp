// What this machine is, for the file of a run: two runs compare only if it is the same.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <optional>

#include "cli/bench/process.hpp"
#include "cli/bench/report.hpp"
#include "cli/machine.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cli::bench {

namespace {

using Json = nlohmann::ordered_json;

/// A number, or "unknown".
template <class T>
Json or_unknown(const std::optional<T>& value) {
  return value ? Json(*value) : Json("unknown");
}

/// What the kernel says is the CPU's highest clock; nothing in most virtual machines.
std::optional<double> max_mhz() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  double kilohertz = 0;
  if (file >> kilohertz) return kilohertz / 1000;
  return {};
}

std::string word_in(const char* path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// Of now, by nvidia-smi, which comes with the driver; and the highest, by CUDA.
Json clocks_of(const CudaDeviceInfo& gpu) {
  std::optional<int> now, memory_now;
  try {
    Process smi({"nvidia-smi", "--id=" + gpu.pci_bus_id, "--query-gpu=clocks.sm,clocks.mem",
                 "--format=csv,noheader,nounits"},
                {});
    int sm = 0, memory = 0;
    if (std::sscanf(smi.read_line().value_or("").c_str(), "%d, %d", &sm, &memory) == 2) {
      now = sm;
      memory_now = memory;
    }
  } catch (const IoError&) {  // there is no nvidia-smi
  }
  return {{"current_mhz", or_unknown(now)},
          {"max_mhz", gpu.clock_mhz},
          {"current_memory_mhz", or_unknown(memory_now)},
          {"memory_mhz", gpu.memory_clock_mhz}};
}

Json gpus_here() {
  Json gpus = Json::array();
  try {
    for (const CudaDeviceInfo& gpu : cuda_devices())
      gpus.push_back({{"name", gpu.name},
                      {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
                      {"memory_bytes", gpu.total_bytes},
                      {"clocks", clocks_of(gpu)},
                      {"bandwidth_bytes_per_second", gpu.bandwidth()},
                      {"driver", driver_version()},
                      {"driver_cuda_version", gpu.driver_version},
                      {"runtime_cuda_version", gpu.runtime_version}});
  } catch (const BackendError&) {  // one that fails has none; opening the backend says why
  }
  return gpus;
}

}  // namespace

Json hardware_here() {
  Json cpu{{"name", cpu_name()},          {"cores", cores()},
           {"threads", num_threads()},    {"isa", simd()},
           {"kernels", Cpu().describe()}, {"memory_bytes", memory_bytes()}};
  const std::string governor = word_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  cpu["clocks"] = {{"current_mhz", or_unknown(current_mhz())},
                   {"max_mhz", or_unknown(max_mhz())},
                   {"governor", governor.empty() ? "unknown" : governor}};
  return {{"cpu", cpu}, {"gpus", gpus_here()}};
}

}  // namespace ferrite::cli::bench
