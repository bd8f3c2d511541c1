// world: the group of all processes that a program was started as. The same program runs alone and under
// mpirun:
//
//   const auto group = dist::world(backend.device());
//   const auto total = dist::all_reduce(*group, x);
#pragma once

#include <memory>
#include <string>

#include "ferrite/dist/group.hpp"

namespace ferrite::dist {

/// How this process was started, as the variables of its launcher say.
struct Launch {
  int rank = 0, size = 1;
  int local_rank = 0;    // among the processes of this host: the index of its GPU, say
  std::string launcher;  // "Open MPI", "PMI", "PMIx", "torchrun"; empty if it was started alone
  std::string address;   // "host:port", where NCCL's rank 0 listens; of torchrun only
};

/// Looks for Open MPI (OMPI_COMM_WORLD_SIZE), the variables of torchrun (WORLD_SIZE, RANK, LOCAL_RANK,
/// MASTER_ADDR, MASTER_PORT), a launcher with PMI (PMI_SIZE: MPICH, Intel MPI, srun --mpi=pmi2), and srun
/// --mpi=pmix (PMIX_RANK and SLURM_NTASKS), in this order. DistError if srun started several tasks without
/// MPI, each of which would think that it is alone, and if a variable of torchrun is missing. ValueError if a
/// variable is not a number.
FERRITE_API Launch launch_from_environment();

/// The group of all processes: an MpiGroup if a launcher of MPI started them, else a world of one. DistError
/// as launch_from_environment and MpiGroup say, if MPI finds another number of processes than the launcher
/// has started (they are then of different MPIs), and for several processes of torchrun, which have no MPI.
FERRITE_API std::unique_ptr<Group> world();

/// The same for tensors of a device. For a GPU it is an NcclGroup, whose host arrays go through MPI if there
/// is one. Where that cannot be (host_reason says why), tensors of GPUs go through the host, and NcclGroup's
/// DistError is thrown if there is no MPI either.
FERRITE_API std::unique_ptr<Group> world(Device device);

/// Why tensors of a GPU go through the host in this group: no NCCL, or ranks that share a GPU. Empty if they
/// do not.
FERRITE_API std::string host_reason(const Group& group, Device device);

}  // namespace ferrite::dist
