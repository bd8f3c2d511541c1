// ferrite doctor: what is there, whether it works, and what to do about what is missing.
#include "cli/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backend_cpu/linalg/lapack.hpp"
#include "cli/backend_option.hpp"
#include "cli/machine.hpp"
#include "cli/show_json.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/isa.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/dist/mpi.hpp"
#include "ferrite/models/quantile_tokenizer/table.hpp"
#include "ferrite/stacks/self_test.hpp"

namespace ferrite::cli {

namespace {

std::string_view to_string(Verdict verdict) {
  static constexpr std::string_view names[] = {"ok", "missing", "FAILED"};
  return names[static_cast<int>(verdict)];
}

bool has_failed(const Check& check) { return check.verdict == Verdict::failed; }

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024 * 1024); }

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

Check check_processor() {
  return {"processor", Verdict::ok,
          fmt::format("{}, {} cores, {}", cpu_name(), cores(), fmt::join(simd(), " ")), ""};
}

/// The copy of the kernels that runs, and those that could.
Check check_kernels() {
  std::vector<std::string> others;
  for (const Isa& isa : isas()) others.push_back(isa.is_here ? isa.name : isa.name + " (not here)");
  try {
    const std::size_t chosen = chosen_isa();
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(chosen));
    return {"kernels", Verdict::ok,
            fmt::format("{}, {} threads{}{}", isas()[chosen].name, num_threads(),
                        others.empty() ? "" : "; also compiled for ", fmt::join(others, ", ")),
            ""};
  } catch (const Error& e) {
    return {"kernels", Verdict::failed, e.what(), "Unset the variable, or give it another value."};
  }
}

Check check_memory() {
  constexpr std::int64_t little = std::int64_t{1} << 30;
  const bool enough = free_bytes() >= little;
  return {"memory", Verdict::ok,
          fmt::format("{:.1f} GiB, {:.1f} GiB free", gib(memory_bytes()), gib(free_bytes())),
          enough ? "" : "Close other programs: training needs some GiB."};
}

Check check_openblas() {
  const bool found = cpu::has_lapack();
  return {"OpenBLAS", found ? Verdict::ok : Verdict::missing, cpu::describe_lapack(),
          found ? "" : "Linear algebra on large matrices is faster with it: apt-get install libopenblas0."};
}

constexpr std::string_view build_again = "cmake --preset release && cmake --build --preset release";

Check check_parquet() {
  const std::string reason = quantile_tokenizer::parquet_unavailable_reason();
  return {"Parquet", reason.empty() ? Verdict::ok : Verdict::missing,
          reason.empty() ? "Apache Arrow reads .parquet files" : reason,
          reason.empty() ? ""
                         : fmt::format("In ferrite's folder: ./dev setup && {}. Other tables need nothing.",
                                       build_again)};
}

Check check_mpi() {
  const std::string reason = dist::mpi_unavailable_reason();
  return {"MPI", reason.empty() ? Verdict::ok : Verdict::missing,
          reason.empty() ? "programs may run as several processes" : reason,
          reason.empty() ? ""
                         : fmt::format("apt-get install libopenmpi-dev openmpi-bin, and in ferrite's folder: "
                                       "{}. One process needs nothing.",
                                       build_again)};
}

Check check_driver() {
  const std::string version = driver_version();
  if (version.empty() && cuda_device_count() == 0)
    return {"NVIDIA driver", Verdict::missing, "none is loaded",
            "A GPU needs it: apt-get install nvidia-driver (Debian) or ubuntu-drivers install, and restart."};
  return {"NVIDIA driver", Verdict::ok, version.empty() ? "loaded, of unknown version" : version, ""};
}

Check check_nvcc() {
  const std::string path = nvcc();
  if (!path.empty()) return {"nvcc", Verdict::ok, path, ""};
  return {"nvcc", Verdict::missing, "neither in PATH nor in CUDA_HOME/bin or /usr/local/cuda/bin",
          "Only to build ferrite for GPUs: apt-get install cuda-toolkit from NVIDIA's repository."};
}

Check check_cudnn() try { return {"cuDNN", Verdict::ok, cudnn_version(), ""}; } catch (const Error& e) {
  return {"cuDNN", Verdict::missing, e.what(),
          "Convolutions and attention on a GPU need it: apt-get install libcudnn9 from NVIDIA's repository."};
}

std::vector<Check> check_gpus() {
  std::vector<Check> checks;
  try {
    for (const CudaDeviceInfo& gpu : cuda_devices())
      checks.push_back(
          {fmt::format("cuda:{}", gpu.index), Verdict::ok,
           fmt::format("{}, {:.1f} GiB, {:.1f} GiB free, CUDA {}.{} by the driver, {}.{} by ferrite",
                       gpu.name, gib(static_cast<std::int64_t>(gpu.total_bytes)),
                       gib(static_cast<std::int64_t>(gpu.free_bytes)), gpu.driver_version / 1000,
                       gpu.driver_version % 1000 / 10, gpu.runtime_version / 1000,
                       gpu.runtime_version % 1000 / 10),
           ""});
  } catch (const Error& e) {
    checks.push_back(
        {"cuda", Verdict::failed, e.what(), "Does `nvidia-smi` list the GPU? If so, restart the driver."});
  }
  if (checks.empty()) {
    std::error_code error;  // of a /dev that cannot be read
    const bool has_devices = std::filesystem::exists("/dev/nvidiactl", error);
    checks.push_back(check_absent_gpu({!driver_version().empty(), has_devices, is_built_with_cuda()},
                                      cuda_unavailable_reason()));
  }
  return checks;
}

Check test_backend(const std::string& name) {
  const auto begin = std::chrono::steady_clock::now();
  SelfTest result;
  try {
    AnyBackend backend(name);
    result = self_test(backend);
  } catch (const std::exception& e) {
    result.findings.push_back(e.what());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (result.passed())
    return {
        "test " + name, Verdict::ok,
        fmt::format("{} ops in {} calls agree with reference, {:.1f} s", result.ops, result.calls, seconds),
        ""};
  std::string all;
  for (const std::string& finding : result.findings) all += (all.empty() ? "" : "; ") + finding;
  return {"test " + name, Verdict::failed, fmt::format("{} findings: {}", result.findings.size(), all),
          advice_about_backend(name)};
}

/// Those of this machine, plain and fused, and reference, which tests that an op gives the same again.
std::vector<std::string> backends_here() {
  std::vector<std::string> names{"reference", "cpu"};
  if (cpu::has_lapack()) names.push_back("cpu-openblas");
  names.push_back("lazy-cpu");
  for (int i = 0; i < cuda_device_count(); ++i) {
    names.push_back(fmt::format("cuda:{}", i));
    names.push_back(fmt::format("lazy-cuda:{}", i));
  }
  return names;
}

void print(const Check& check) {
  fmt::print("{:<18}{:<9}{}\n", check.name, to_string(check.verdict), check.what);
  if (!check.advice.empty()) fmt::print("{:<18}{:<9}-> {}\n", "", "", check.advice);
  std::fflush(stdout);
}

int run_doctor(bool as_json, bool with_tests) {
  std::vector<Check> checks;
  const auto take = [&](Check check) {
    if (!as_json) print(check);
    checks.push_back(std::move(check));
  };
  take({"ferrite", Verdict::ok, fmt::format("{}, built with {}", FERRITE_VERSION, compiler()), ""});
  take(check_processor());
  take(check_kernels());
  take(check_memory());
  take(check_openblas());
  take(check_parquet());
  take(check_mpi());
  take(check_driver());
  take(check_nvcc());
  if (is_built_with_cuda()) take(check_cudnn());
  for (Check& check : check_gpus()) take(std::move(check));
  if (with_tests)
    for (const std::string& name : backends_here()) take(test_backend(name));
  const bool healthy = std::none_of(checks.begin(), checks.end(), has_failed);
  const std::string_view automatic = AnyBackend::automatic_name();
  if (as_json) {
    nlohmann::ordered_json json{
        {"healthy", healthy}, {"auto", automatic}, {"checks", nlohmann::ordered_json::array()}};
    for (const Check& c : checks)
      json["checks"].push_back(
          {{"name", c.name}, {"verdict", to_string(c.verdict)}, {"what", c.what}, {"advice", c.advice}});
    show_json(json);
  } else {
    fmt::print("\n{}\n", last_line(checks, automatic));
  }
  return healthy ? success : difference;
}

}  // namespace

Check check_absent_gpu(const GpuSigns& signs, const std::string& reason) {
  if (!signs.has_driver)
    return {"cuda", Verdict::missing, reason, "Without a GPU, --backend auto is the CPU."};
  if (!signs.is_built_with_cuda)
    return {"cuda", Verdict::missing, reason,
            "There is a driver. For its GPU, in ferrite's folder: cmake --preset release -DFERRITE_CUDA=ON "
            "&& cmake --build --preset release"};
  if (!signs.has_devices)
    return {"cuda", Verdict::missing, "the NVIDIA driver is loaded, but there is no /dev/nvidiactl",
            "In a container: docker run --gpus all. Until then, --backend auto is the CPU."};
  return {"cuda", Verdict::failed, reason, "Until then, --backend auto is the CPU."};
}

std::string advice_about_backend(const std::string& name) {
  const bool on_gpu = name.find("cuda") != std::string::npos;
  return fmt::format("Results on {} are wrong or missing. Use {}, and report this output.", name,
                     on_gpu ? "--backend cpu, for auto takes the GPU" : "another --backend");
}

std::string last_line(const std::vector<Check>& checks, std::string_view automatic) {
  const bool healthy = std::none_of(checks.begin(), checks.end(), has_failed);
  const bool auto_fails =
      automatic == "cuda" && std::any_of(checks.begin(), checks.end(), [](const Check& c) {
        return has_failed(c) && (c.name == "cuda" || c.name == "test cuda:0");
      });
  return fmt::format("{}. --backend auto is {}{}.",
                     healthy ? "All that is here works" : "Something does not work, see above", automatic,
                     auto_fails ? ", which does not work: give --backend cpu" : "");
}

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what is installed, test every backend, and advise about what is missing or broken");
  auto as_json = std::make_shared<bool>(false), no_tests = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->add_flag("--no-tests", *no_tests, "Only look, do not run the self-tests");
  command->footer(
      "Examples:\n  ferrite doctor\n  ferrite doctor --json --no-tests\nThe exit code is 1 if a test fails.");
  command->callback([&action, as_json, no_tests] {
    action = [as_json, no_tests] { return run_doctor(*as_json, !*no_tests); };
  });
}

}  // namespace ferrite::cli
