# MPI, which is optional: any one that CMake finds (Open MPI, MPICH). Defines the target ferrite_mpi if found.
set(FERRITE_MPI AUTO CACHE STRING "Groups of processes by MPI: AUTO (where it is found), ON or OFF")
if(NOT FERRITE_MPI)
  return()
endif()

set(MPI_CXX_SKIP_MPICXX ON)  # the C functions are enough
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  add_library(ferrite_mpi INTERFACE)
  target_link_libraries(ferrite_mpi INTERFACE MPI::MPI_CXX)
  message(STATUS "MPI: ${MPI_CXX_COMPILER}")
elseif(NOT FERRITE_MPI STREQUAL "AUTO")
  message(FATAL_ERROR "MPI: not found; ./dev setup installs Open MPI")
else()
  message(STATUS "MPI: not found, there is no MpiGroup")
endif()
