// Finds the module with MPI (dist/mpi_transport.hpp).
#include "core/plugin.hpp"
#include "dist/mpi_transport.hpp"
#include "ferrite/dist/mpi.hpp"

namespace ferrite::dist {

#ifndef FERRITE_MPI_INSIDE

namespace {

const Plugin& plugin() {
  // Global: the plugins of Open MPI look for the symbols of libmpi among those of the program.
  static const Plugin mpi("ferrite_mpi", "ferrite_open_mpi", "MPI", Plugin::Symbols::global);
  return mpi;
}

}  // namespace

std::unique_ptr<MpiTransport> open_mpi() {
  const auto open = reinterpret_cast<decltype(&ferrite_open_mpi)>(plugin().function());
  if (open == nullptr) throw DistError("[mpi] " + plugin().reason());
  return std::unique_ptr<MpiTransport>(open());
}

std::string mpi_unavailable_reason() { return plugin().reason(); }

#else

std::unique_ptr<MpiTransport> open_mpi() { return std::unique_ptr<MpiTransport>(ferrite_open_mpi()); }

std::string mpi_unavailable_reason() { return ""; }

#endif

}  // namespace ferrite::dist
