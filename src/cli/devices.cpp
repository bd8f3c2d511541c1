// ferrite devices: the devices of this machine, and which of them are used.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/thread_pool.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace ferrite::cli {

namespace {

/// The value of the first line "key : value" of a file under /proc; empty if there is none.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (line.compare(0, key.size(), key) != 0 || colon == std::string::npos) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::string cpu_name() {
  for (const char* key : {"model name", "Model", "Hardware"})
    if (std::string name = proc_value("/proc/cpuinfo", key); !name.empty()) return name;
  const std::string part = proc_value("/proc/cpuinfo", "CPU part");  // Arm kernels give numbers only
  if (part.empty()) return "unknown";
  return fmt::format("Arm part {} of implementer {}", part, proc_value("/proc/cpuinfo", "CPU implementer"));
}

std::vector<std::string> simd() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) found.push_back("sse4.2");
  if (__builtin_cpu_supports("avx2")) found.push_back("avx2");
  if (__builtin_cpu_supports("fma")) found.push_back("fma");
  if (__builtin_cpu_supports("avx512f")) found.push_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) found.push_back("avx512bw");
#elif defined(__aarch64__)
  const unsigned long features = getauxval(AT_HWCAP);
  if (features & HWCAP_ASIMD) found.push_back("neon");
  if (features & HWCAP_ASIMDHP) found.push_back("fp16");
  if (features & HWCAP_SVE) found.push_back("sve");
#endif
  return found;
}

/// MemAvailable counts caches that can be given up; free pages are the fallback where there is no /proc.
std::int64_t free_bytes() {
  const std::string kilobytes = proc_value("/proc/meminfo", "MemAvailable");
  if (!kilobytes.empty()) return 1024 * std::atoll(kilobytes.c_str());
  return std::int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

nlohmann::ordered_json to_json(const CudaDeviceInfo& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
          {"memory_bytes", gpu.total_bytes},
          {"free_bytes", gpu.free_bytes},
          {"l2_cache_bytes", gpu.l2_cache_bytes},
          {"multiprocessors", gpu.multiprocessors},
          {"clock_mhz", gpu.clock_mhz},
          {"memory_clock_mhz", gpu.memory_clock_mhz},
          {"memory_bus_bits", gpu.memory_bus_bits},
          {"bandwidth_bytes_per_second", gpu.bandwidth()},
          {"pci_bus_id", gpu.pci_bus_id},
          {"driver_cuda_version", gpu.driver_version},
          {"runtime_cuda_version", gpu.runtime_version}};
}

void print(const CudaDeviceInfo& gpu) {
  const auto gib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024 * 1024); };
  fmt::print("cuda:{}  {}, compute capability {}.{}, {}\n", gpu.index, gpu.name, gpu.compute_major,
             gpu.compute_minor, gpu.pci_bus_id);
  fmt::print("      {} multiprocessors at up to {} MHz, {:.0f} MiB L2 cache\n", gpu.multiprocessors,
             gpu.clock_mhz, 1024 * gib(gpu.l2_cache_bytes));
  fmt::print("      {:.1f} GiB memory, {:.1f} GiB free; {} bit at {} MHz, {:.0f} GB/s by the data sheet\n",
             gib(gpu.total_bytes), gib(gpu.free_bytes), gpu.memory_bus_bits, gpu.memory_clock_mhz,
             gpu.bandwidth() / 1e9);
  fmt::print("      CUDA {}.{} by the driver, {}.{} by ferrite\n", gpu.driver_version / 1000,
             gpu.driver_version % 1000 / 10, gpu.runtime_version / 1000, gpu.runtime_version % 1000 / 10);
}

int run(bool as_json) {
  const double gib = 1024.0 * 1024 * 1024;
  const std::int64_t total = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const unsigned cores = std::thread::hardware_concurrency();
  const std::string backend = Cpu().describe();
  const std::vector<CudaDeviceInfo> gpus = cuda_devices();
  if (as_json) {
    nlohmann::ordered_json json{{"cpu",
                                 {{"name", cpu_name()},
                                  {"cores", cores},
                                  {"threads", num_threads()},
                                  {"simd", simd()},
                                  {"memory_bytes", total},
                                  {"free_bytes", free_bytes()},
                                  {"backend", backend}}},
                                {"cuda", nlohmann::ordered_json::array()}};
    for (const CudaDeviceInfo& gpu : gpus) json["cuda"].push_back(to_json(gpu));
    if (gpus.empty()) json["cuda_unavailable"] = cuda_unavailable_reason();
    fmt::print("{}\n", json.dump(2));
    return success;
  }
  fmt::print("cpu   {}\n", cpu_name());
  fmt::print("      {} logical cores, {} threads used (FERRITE_NUM_THREADS), {}\n", cores, num_threads(),
             fmt::join(simd(), " "));
  fmt::print("      {:.1f} GiB memory, {:.1f} GiB free\n", static_cast<double>(total) / gib,
             static_cast<double>(free_bytes()) / gib);
  fmt::print("      backend: {}\n", backend);
  for (const CudaDeviceInfo& gpu : gpus) print(gpu);
  if (gpus.empty()) fmt::print("cuda  {}\n", cuda_unavailable_reason());
  return success;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "Say what this machine has and what ferrite uses of it");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->footer("Examples:\n  ferrite devices\n  FERRITE_NUM_THREADS=4 ferrite devices --json");
  command->callback([&action, as_json] { action = [as_json] { return run(*as_json); }; });
}

}  // namespace ferrite::cli
