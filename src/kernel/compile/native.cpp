// A compiler process, a shared library, and the way into it.
#include "kernel/compile/native.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ferrite/core/error.hpp"

extern char** environ;

namespace ferrite::kernel {

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A folder of its own, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / ("ferrite_" + std::string(6, 'X'))).string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw IoError(fmt::format("[kernel] {}: no temporary folder can be made there", pattern));
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

/// The exit status of a program whose output goes into a file; 127 if it cannot be run.
int run(const std::vector<std::string>& command, const fs::path& output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int started = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) return 127;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

const std::vector<std::string> options = {"-std=c++17",         "-O3",     "-march=native", "-fno-math-errno",
                                          "-fno-trapping-math", "-fwrapv", "-shared",       "-fPIC"};

/// What a compiler says of itself and of the machine, asked once. "native" is another processor on another
/// machine, and homes are shared between machines: the macros it defines tell which instructions it takes.
std::string description_of(const std::string& compiler) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::string> known;
  const std::lock_guard guard(mutex);
  std::string& description = known[compiler];
  if (!description.empty()) return description;
  const TemporaryFolder folder;
  if (run({compiler, "--version"}, folder / "version") != 0)
    throw BackendError(
        fmt::format("[kernel] compiler '{}': cannot be run; FERRITE_KERNEL_COMPILER names it", compiler));
  std::vector<std::string> macros = {compiler, "-dM", "-E", "-x", "c++", "/dev/null"};
  macros.insert(macros.end(), options.begin(), options.end());
  if (run(macros, folder / "macros") != 0)
    throw BackendError(
        fmt::format("[kernel] {} refused its options:\n{}", compiler, read_file(folder / "macros")));
  return description = read_file(folder / "version") + read_file(folder / "macros");
}

}  // namespace

NativeKernel compile_native(const std::string& source, const std::string& entry, const std::string& compiler,
                            const BinaryCache& cache) {
  const std::string key =
      fmt::format("{} {}\n{}\n{}", compiler, description_of(compiler), fmt::join(options, " "), source);
  const TemporaryFolder folder;
  const fs::path library = folder / "kernel.so";
  if (const auto known = cache.find(key)) {
    std::ofstream(library, std::ios::binary) << *known;
  } else {
    std::ofstream(folder / "kernel.cpp", std::ios::binary) << source;
    std::vector<std::string> command = {compiler};
    command.insert(command.end(), options.begin(), options.end());
    for (const std::string& word : {(folder / "kernel.cpp").string(), std::string("-o"), library.string()})
      command.push_back(word);
    if (run(command, folder / "log") != 0)
      throw BackendError(
          fmt::format("[kernel] {} refused the emitted C++:\n{}", compiler, read_file(folder / "log")));
    cache.keep(key, read_file(library));
  }
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = handle == nullptr ? nullptr : ::dlsym(handle, (entry + "_packed").c_str());
  if (symbol == nullptr) throw BackendError(fmt::format("[kernel] {}", ::dlerror()));
  return reinterpret_cast<NativeKernel>(symbol);
}

}  // namespace ferrite::kernel
