// Reads /proc and asks the processor.
#include "cli/machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

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

}  // namespace

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

unsigned cores() { return std::thread::hardware_concurrency(); }

std::optional<double> current_mhz() {
  double fastest = 0;
  for (unsigned core = 0; core < cores(); ++core) {
    double kilohertz = 0;
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", core));
    if (file >> kilohertz) fastest = std::max(fastest, kilohertz / 1000);
  }
  if (fastest == 0) fastest = std::atof(proc_value("/proc/cpuinfo", "cpu MHz").c_str());
  if (fastest == 0) return {};
  return fastest;
}

std::int64_t memory_bytes() { return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

// MemAvailable counts caches that can be given up; free pages are the fallback where there is no /proc.
std::int64_t free_bytes() {
  const std::string kilobytes = proc_value("/proc/meminfo", "MemAvailable");
  if (!kilobytes.empty()) return 1024 * std::atoll(kilobytes.c_str());
  return std::int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::smatch found;
  return std::regex_search(line, found, std::regex(R"(\d+\.\d+(\.\d+)?)")) ? found.str() : "";
}

std::string nvcc() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::vector<std::string> folders;
  std::istringstream path(variable("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string home = variable(name); !home.empty()) folders.push_back(home + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::canonical(folder + "/nvcc", error);
    if (!error) return file.string();
  }
  return "";
}

}  // namespace ferrite::cli
