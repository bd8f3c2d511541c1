#include "core/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

namespace ferrite {

namespace {
/// Anything of this library.
void here() {}
}  // namespace

Plugin::Plugin(const std::string& name, const char* function, const std::string& software, Symbols symbols) {
  Dl_info library;
  if (dladdr(reinterpret_cast<void*>(&here), &library) == 0) {
    reason_ =
        fmt::format("{} cannot be loaded: the system does not say where ferrite's library is", software);
    return;
  }
  const auto module = std::filesystem::path(library.dli_fname).parent_path() /
                      fmt::format("lib{}-{}.so", name, FERRITE_VERSION);
  std::error_code ignored;
  if (!std::filesystem::exists(module, ignored)) {
    reason_ = fmt::format("this ferrite was built without {}; run ./dev setup and build it again", software);
    return;
  }
  void* const handle =
      dlopen(module.c_str(), RTLD_NOW | (symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (handle != nullptr) function_ = dlsym(handle, function);
  if (function_ == nullptr)
    reason_ = fmt::format("{} cannot be loaded: {}; install what is missing, or build ferrite again",
                          software, dlerror());
}

}  // namespace ferrite
