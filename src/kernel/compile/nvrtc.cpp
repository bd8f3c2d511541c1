// NVRTC, NVIDIA's compiler as a library: loaded at first use, so that ferrite runs without it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "ferrite/kernel/emit.hpp"
#include "kernel/compile/binary_cache.hpp"
#include "kernel/compile/nvrtc.hpp"

namespace ferrite::kernel {

namespace {

using Program = struct OpaqueProgram*;

/// The functions of nvrtc.h that are used; its results are 0 for success.
struct Nvrtc {
  int (*version)(int*, int*);
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*destroy)(Program*);
  const char* (*error_text)(int);
  int (*architecture_count)(int*);
  int (*architectures)(int*);
  std::string include;  // the folder of cuda_fp16.h, if it is near the library

  bool is_at_least(int wanted_major, int wanted_minor) const {
    int major = 0, minor = 0;
    version(&major, &minor);
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }

  /// NVRTC itself only says that an option is wrong, not which ones are valid.
  void check_architecture(int wanted) const {
    int count = 0;
    architecture_count(&count);
    std::vector<int> known(static_cast<std::size_t>(count));
    architectures(known.data());
    if (std::find(known.begin(), known.end(), wanted) == known.end())
      throw ValueError(fmt::format("[nvrtc] architecture {} (--arch): this NVRTC compiles for {}", wanted,
                                   fmt::join(known, ", ")));
  }

  Nvrtc() {
    void* handle = nullptr;
    std::string reason;
    for (const char* file :
         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);  // never closed: its objects live as long as the process
      if (handle != nullptr) break;
      if (reason.empty()) reason = dlerror();
    }
    if (handle == nullptr)
      throw BackendError(fmt::format(
          "[nvrtc] {}: install NVRTC (part of the CUDA toolkit), or add its folder to LD_LIBRARY_PATH",
          reason));
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr)
        throw BackendError(
            fmt::format("[nvrtc] libnvrtc has no function {}: install CUDA 12 or newer", name));
    };
    find("nvrtcVersion", version);
    find("nvrtcCreateProgram", create);
    find("nvrtcCompileProgram", compile);
    find("nvrtcGetProgramLogSize", log_size);
    find("nvrtcGetProgramLog", log);
    find("nvrtcGetPTXSize", ptx_size);
    find("nvrtcGetPTX", ptx);
    find("nvrtcGetCUBINSize", cubin_size);
    find("nvrtcGetCUBIN", cubin);
    find("nvrtcDestroyProgram", destroy);
    find("nvrtcGetErrorString", error_text);
    find("nvrtcGetNumSupportedArchs", architecture_count);
    find("nvrtcGetSupportedArchs", architectures);
    Dl_info where;
    if (dladdr(reinterpret_cast<void*>(compile), &where) == 0) return;
    std::error_code ignored;
    const auto library = std::filesystem::canonical(where.dli_fname, ignored);
    for (const char* folder : {"../include", "../../include", "../../../include"}) {
      const auto candidate = library.parent_path() / folder;
      if (!std::filesystem::exists(candidate / "cuda_fp16.h", ignored)) continue;
      include = std::filesystem::canonical(candidate, ignored).string();
      return;
    }
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc library;
  return library;
}

enum class Code : std::uint8_t { ptx, cubin };

std::string target_of(int architecture, Code code) {
  return fmt::format("--gpu-architecture={}_{}", code == Code::cubin ? "sm" : "compute", architecture);
}

std::vector<std::string> options_of(const Nvrtc& n, int architecture, Code code, CompileEffort effort) {
  const bool as_cubin = code == Code::cubin;
  std::vector<std::string> options = {target_of(architecture, code), "--std=c++17"};
  if (!n.include.empty()) options.push_back("--include-path=" + n.include);
  // No textures, no runtime functions on the device: a seventh of the time.
  if (n.is_at_least(12, 4)) options.push_back("--minimal");
  if (effort == CompileEffort::least && n.is_at_least(12, 8)) {
    // Work that the first half of the compiler skips falls to the second half, so for machine code it skips
    // less.
    options.push_back(as_cubin ? "--Ofast-compile=min" : "--Ofast-compile=max");
    if (as_cubin) options.push_back("--ptxas-options=--Ofast-compile=max");
  }
  // Code in a hurry is code that is needed once: in NVRTC's cache on disk it would only push out other code.
  if (effort == CompileEffort::least && n.is_at_least(12, 9)) options.push_back("--no-cache");
  return options;
}

std::vector<std::string> options_of(const Nvrtc& n, int architecture, Code code, const RawText& text) {
  std::vector<std::string> options = {target_of(architecture, code)};
  const auto is_standard = [](const std::string& o) {
    return o.starts_with("--std=") || o.starts_with("-std=");
  };
  if (std::none_of(text.options.begin(), text.options.end(), is_standard)) options.push_back("--std=c++17");
  if (!n.include.empty()) {
    options.push_back("--include-path=" + n.include);
    options.push_back("--include-path=" + n.include + "/cccl");  // <cuda/std/...>, from CUDA 13 on
  }
  options.insert(options.end(), text.options.begin(), text.options.end());
  return options;
}

std::string compile(const std::string& source, const std::string& file, int architecture, Code code,
                    const std::vector<std::string>& texts) {
  const Nvrtc& n = nvrtc();
  n.check_architecture(architecture);
  const auto check = [&](int status) {
    if (status != 0) throw BackendError(fmt::format("[nvrtc] {}", n.error_text(status)));
  };
  Program program = nullptr;
  check(n.create(&program, source.c_str(), file.c_str(), 0, nullptr, nullptr));
  struct Destroy {
    const Nvrtc& library;
    Program& program;
    ~Destroy() { library.destroy(&program); }
  } const destroy{n, program};
  std::vector<const char*> options;
  for (const std::string& text : texts) options.push_back(text.c_str());
  const int status = n.compile(program, static_cast<int>(options.size()), options.data());
  if (status != 0) {
    std::size_t size = 0;
    check(n.log_size(program, &size));
    std::string log(size, '\0');
    check(n.log(program, log.data()));
    throw KernelError(nullptr, {}, fmt::format("NVRTC: {}\n{}", n.error_text(status), log.c_str()));
  }
  const bool as_cubin = code == Code::cubin;
  std::size_t size = 0;
  check(as_cubin ? n.cubin_size(program, &size) : n.ptx_size(program, &size));
  std::string result(size, '\0');
  check(as_cubin ? n.cubin(program, result.data()) : n.ptx(program, result.data()));
  if (!as_cubin) result.resize(size - 1);  // it counts the end of the text
  return result;
}

std::string cached_cubin(const std::string& source, const std::string& file, int architecture,
                         const std::vector<std::string>& options, const BinaryCache& cache) {
  const std::string key = fmt::format("nvrtc {} {}\n{}", nvrtc_version(), fmt::join(options, " "), source);
  if (auto found = cache.find(key)) return *std::move(found);
  std::string code = compile(source, file, architecture, Code::cubin, options);
  cache.keep(key, code);
  return code;
}

constexpr const char* emitted = "kernel.cu";

}  // namespace

std::string compile_ptx(const std::string& cuda_source, int architecture, CompileEffort effort) {
  return compile(cuda_source, emitted, architecture, Code::ptx,
                 options_of(nvrtc(), architecture, Code::ptx, effort));
}
std::string compile_cubin(const std::string& cuda_source, int architecture, CompileEffort effort) {
  return compile(cuda_source, emitted, architecture, Code::cubin,
                 options_of(nvrtc(), architecture, Code::cubin, effort));
}
std::string raw_cubin(const RawText& text, int architecture) {
  return compile(text.source, text.file, architecture, Code::cubin,
                 options_of(nvrtc(), architecture, Code::cubin, text));
}
std::string raw_ptx(const RawText& text, int architecture) {
  return compile(text.source, text.file, architecture, Code::ptx,
                 options_of(nvrtc(), architecture, Code::ptx, text));
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  nvrtc().version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

std::string cached_cubin(const std::string& cuda_source, int architecture, const BinaryCache& cache) {
  return cached_cubin(cuda_source, emitted, architecture,
                      options_of(nvrtc(), architecture, Code::cubin, CompileEffort::full), cache);
}
std::string cached_cubin(const RawText& text, int architecture, const BinaryCache& cache) {
  return cached_cubin(text.source, text.file, architecture,
                      options_of(nvrtc(), architecture, Code::cubin, text), cache);
}

}  // namespace ferrite::kernel
