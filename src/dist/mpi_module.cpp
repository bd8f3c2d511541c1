// Finds the module with MPI (dist/mpi_transport.hpp).
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "dist/mpi_transport.hpp"
#include "ferrite/dist/mpi.hpp"

namespace ferrite::dist {

#ifndef FERRITE_MPI_INSIDE

namespace {

struct Module {
  decltype(&ferrite_open_mpi) open = nullptr;
  std::string reason;  // why there is none

  Module() {
    Dl_info library;
    if (dladdr(reinterpret_cast<void*>(&open_mpi), &library) == 0) return;
    const auto module =
        std::filesystem::path(library.dli_fname).parent_path() / ("libferrite_mpi-" FERRITE_VERSION ".so");
    std::error_code ignored;
    if (!std::filesystem::exists(module, ignored)) {
      reason = "this ferrite was built without MPI; run ./dev setup and build it again";
      return;
    }
    // Global: the plugins of Open MPI look for the symbols of libmpi among those of the program.
    void* const handle =
        dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);  // never closed: MPI runs until the end
    if (handle != nullptr) open = reinterpret_cast<decltype(open)>(dlsym(handle, "ferrite_open_mpi"));
    if (open == nullptr)
      reason =
          fmt::format("MPI cannot be loaded: {}; install what is missing, or build ferrite again", dlerror());
  }

  static const Module& get() {
    static const Module module;
    return module;
  }
};

}  // namespace

std::unique_ptr<MpiTransport> open_mpi() {
  const Module& module = Module::get();
  if (module.open == nullptr) throw DistError("[mpi] " + module.reason);
  return std::unique_ptr<MpiTransport>(module.open());
}

std::string mpi_unavailable_reason() { return Module::get().reason; }

#else

std::unique_ptr<MpiTransport> open_mpi() { return std::unique_ptr<MpiTransport>(ferrite_open_mpi()); }

std::string mpi_unavailable_reason() { return ""; }

#endif

}  // namespace ferrite::dist
