// What this machine is, for the file of a run: two runs compare only if it is the same.
#include <fmt/format.h>

#include <fstream>
#include <regex>

#include "cli/bench/report.hpp"
#include "cli/machine.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cli::bench {

namespace {

using Json = nlohmann::ordered_json;

/// The version in the first line of the driver's file, "570.86.15"; empty where there is none.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::smatch found;
  return std::regex_search(line, found, std::regex(R"(\d+\.\d+(\.\d+)?)")) ? found.str() : "";
}

/// Megahertz by the kernel; nothing where it does not say, as in most virtual machines.
std::optional<double> frequency(const char* which) {
  std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cpufreq/") + which);
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

Json gpus_here() {
  Json gpus = Json::array();
  try {
    for (const CudaDeviceInfo& gpu : cuda_devices())
      gpus.push_back({{"name", gpu.name},
                      {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
                      {"memory_bytes", gpu.total_bytes},
                      {"clocks", {{"max_mhz", gpu.clock_mhz}, {"memory_mhz", gpu.memory_clock_mhz}}},
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
  Json clocks = Json::object();
  if (const auto mhz = frequency("scaling_cur_freq")) clocks["current_mhz"] = *mhz;
  if (const auto mhz = frequency("cpuinfo_max_freq")) clocks["max_mhz"] = *mhz;
  const std::string governor = word_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty()) clocks["governor"] = governor;
  cpu["clocks"] = clocks;
  return {{"cpu", cpu}, {"gpus", gpus_here()}};
}

}  // namespace ferrite::cli::bench
