// ferrite devices: the devices of this machine, and which of them are used.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/device_links.hpp"
#include "cli/machine.hpp"
#include "cli/show_json.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cli {

namespace {

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

int run_devices(bool as_json) {
  const double gib = 1024.0 * 1024 * 1024;
  const std::int64_t total = memory_bytes();
  const std::string backend = Cpu().describe();
  const std::vector<CudaDeviceInfo> gpus = cuda_devices();
  if (as_json) {
    nlohmann::ordered_json json{{"cpu",
                                 {{"name", cpu_name()},
                                  {"cores", cores()},
                                  {"threads", num_threads()},
                                  {"simd", simd()},
                                  {"memory_bytes", total},
                                  {"free_bytes", free_bytes()},
                                  {"backend", backend}}},
                                {"cuda", nlohmann::ordered_json::array()}};
    for (const CudaDeviceInfo& gpu : gpus) json["cuda"].push_back(to_json(gpu));
    json["links"] = links_json(cuda_links());
    if (gpus.empty()) json["cuda_unavailable"] = cuda_unavailable_reason();
    show_json(json);
    return success;
  }
  fmt::print("cpu   {}\n", cpu_name());
  fmt::print("      {} logical cores, {} threads used (FERRITE_NUM_THREADS), {}\n", cores(), num_threads(),
             fmt::join(simd(), " "));
  fmt::print("      {:.1f} GiB memory, {:.1f} GiB free\n", static_cast<double>(total) / gib,
             static_cast<double>(free_bytes()) / gib);
  fmt::print("      backend: {}\n", backend);
  for (const CudaDeviceInfo& gpu : gpus) print(gpu);
  fmt::print("{}", links_text(cuda_links()));
  if (gpus.empty()) fmt::print("cuda  {}\n", cuda_unavailable_reason());
  return success;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "Say what this machine has and what ferrite uses of it");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->footer("Examples:\n  ferrite devices\n  FERRITE_NUM_THREADS=4 ferrite devices --json");
  command->callback([&action, as_json] { action = [as_json] { return run_devices(*as_json); }; });
}

}  // namespace ferrite::cli
