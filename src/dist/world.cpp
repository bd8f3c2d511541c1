#include "ferrite/dist/world.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>

#include "ferrite/dist/in_process.hpp"
#include "ferrite/dist/mpi.hpp"

namespace ferrite::dist {

namespace {

std::optional<int> number(const char* variable) {
  const char* const given = std::getenv(variable);
  if (given == nullptr || *given == '\0') return {};
  const std::string_view text = given;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw ValueError(fmt::format("[dist] {}={}: needs a number, as the launcher sets it", variable, text));
  return value;
}

Launch make_launch(std::string launcher, int size, const char* rank, std::optional<int> local_rank) {
  return {number(rank).value_or(0), size, local_rank.value_or(0), std::move(launcher)};
}

}  // namespace

Launch launch_from_environment() {
  const auto slurm_local = number("SLURM_LOCALID");
  if (const auto size = number("OMPI_COMM_WORLD_SIZE"))
    return make_launch("Open MPI", *size, "OMPI_COMM_WORLD_RANK", number("OMPI_COMM_WORLD_LOCAL_RANK"));
  if (const auto size = number("PMI_SIZE")) {
    const auto local = number("MPI_LOCALRANKID");
    return make_launch("PMI", *size, "PMI_RANK", local ? local : slurm_local);
  }
  if (const auto size = number("SLURM_NTASKS"); size && number("PMIX_RANK"))
    return make_launch("PMIx", *size, "PMIX_RANK", slurm_local);
  if (const int tasks = number("SLURM_STEP_NUM_TASKS").value_or(1); tasks > 1)
    throw DistError(fmt::format(
        "[dist] srun started {} tasks without MPI, and each would be alone: use srun --mpi=pmix", tasks));
  if (const int processes = number("WORLD_SIZE").value_or(1); processes > 1)
    throw DistError(
        fmt::format("[dist] WORLD_SIZE={} without MPI, and each process would be alone: start the program "
                    "by mpirun -n {}, or unset WORLD_SIZE",
                    processes, processes));
  return {};
}

std::unique_ptr<Group> world() {
  const Launch launch = launch_from_environment();
  if (launch.launcher.empty() || (launch.size == 1 && !mpi_unavailable_reason().empty()))
    return std::move(InProcessGroup::create(1)[0]);
  auto group = std::make_unique<MpiGroup>();
  if (group->size() != launch.size)
    throw DistError(
        fmt::format("[dist] {} started {} processes, but MPI finds {}: the launcher belongs to another MPI "
                    "than the one that ferrite was built with",
                    launch.launcher, launch.size, group->size()));
  return group;
}

}  // namespace ferrite::dist
