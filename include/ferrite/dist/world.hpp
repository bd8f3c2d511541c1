// world: the group of all processes that a program was started as. The same program runs alone and under
// mpirun:
//
//   const auto group = dist::world();
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
  std::string launcher;  // "Open MPI", "PMI", "PMIx"; empty if it was started alone
};

/// Looks for Open MPI (OMPI_COMM_WORLD_SIZE), a launcher with PMI (PMI_SIZE: MPICH, Intel MPI, srun
/// --mpi=pmi2) and srun --mpi=pmix (PMIX_RANK and SLURM_NTASKS), in this order. DistError if srun started
/// several tasks without MPI, or torchrun several processes (WORLD_SIZE): each would think that it is alone.
/// ValueError if a variable is not a number.
FERRITE_API Launch launch_from_environment();

/// The group of all processes: an MpiGroup if a launcher of MPI started them, else a world of one. DistError
/// as launch_from_environment and MpiGroup say, and if MPI finds another number of processes than the
/// launcher has started: they are then of different MPIs.
FERRITE_API std::unique_ptr<Group> world();

}  // namespace ferrite::dist
