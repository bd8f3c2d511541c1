#include "ferrite/dist/world.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "core/to_number.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/dist/collectives.hpp"
#include "ferrite/dist/in_process.hpp"
#include "ferrite/dist/mpi.hpp"
#include "ferrite/dist/nccl.hpp"

namespace ferrite::dist {

namespace {

std::optional<int> number(const char* variable) {
  const char* const given = std::getenv(variable);
  if (given == nullptr || *given == '\0') return {};
  const auto value = to_number<int>(given);
  if (!value || *value < 0)
    throw ValueError(fmt::format("[dist] {}={}: needs a number, as the launcher sets it", variable, given));
  return value;
}

Launch make_launch(std::string launcher, int size, const char* rank, std::optional<int> local_rank) {
  return {number(rank).value_or(0), size, local_rank.value_or(0), std::move(launcher), ""};
}

/// torchrun itself listens at MASTER_PORT, and says so.
Launch torchrun_launch(int size) {
  const auto given = [&](const char* variable) -> std::string {
    const char* const text = std::getenv(variable);
    if (text != nullptr && *text != '\0') return text;
    throw DistError(
        fmt::format("[dist] WORLD_SIZE={} without {}: start the program by torchrun --no-python or mpirun, "
                    "or unset WORLD_SIZE",
                    size, variable));
  };
  for (const char* variable : {"RANK", "LOCAL_RANK", "MASTER_PORT"}) static_cast<void>(given(variable));
  Launch launch = make_launch("torchrun", size, "RANK", number("LOCAL_RANK"));
  const std::string address = given("MASTER_ADDR");
  const char* const taken = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const int port = *number("MASTER_PORT") + (taken != nullptr && std::string_view(taken) == "True" ? 1 : 0);
  launch.address = fmt::format("{}:{}", address, port);
  return launch;
}

/// One line for each rank: the GPU that it uses.
bool share_gpus(Group& hosts, int gpu) {
  constexpr std::size_t length = 256;
  char host[128] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string own =
      fmt::format("{} {}", cuda_devices()[static_cast<std::size_t>(gpu)].pci_bus_id, host);
  const Array mine = detail::host_array({{length}, DType::u8});
  std::memset(mine.data(), 0, length);
  std::memcpy(mine.data(), own.data(), std::min(own.size(), length));
  const Array all = detail::host_array({{hosts.size() * static_cast<std::int64_t>(length)}, DType::u8});
  hosts.all_gather(mine, all);
  std::set<std::string> gpus;
  for (int i = 0; i < hosts.size(); ++i)
    gpus.emplace(all.data<char>() + static_cast<std::size_t>(i) * length, length);
  return std::ssize(gpus) < hosts.size();
}

}  // namespace

Launch launch_from_environment() {
  const auto slurm_local = number("SLURM_LOCALID");
  if (const auto size = number("OMPI_COMM_WORLD_SIZE"))
    return make_launch("Open MPI", *size, "OMPI_COMM_WORLD_RANK", number("OMPI_COMM_WORLD_LOCAL_RANK"));
  // Before Slurm's own: srun may have started torchrun, whose processes inherit its variables.
  const auto processes = number("WORLD_SIZE");
  if (processes && std::getenv("RANK") != nullptr && std::getenv("MASTER_ADDR") != nullptr)
    return torchrun_launch(*processes);
  if (const auto size = number("PMI_SIZE")) {
    const auto local = number("MPI_LOCALRANKID");
    return make_launch("PMI", *size, "PMI_RANK", local ? local : slurm_local);
  }
  if (const auto size = number("SLURM_NTASKS"); size && number("PMIX_RANK"))
    return make_launch("PMIx", *size, "PMIX_RANK", slurm_local);
  if (const int tasks = number("SLURM_STEP_NUM_TASKS").value_or(1); tasks > 1)
    throw DistError(fmt::format(
        "[dist] srun started {} tasks without MPI, and each would be alone: use srun --mpi=pmix", tasks));
  if (processes && *processes > 1) return torchrun_launch(*processes);
  return {};
}

std::unique_ptr<Group> world() {
  const Launch launch = launch_from_environment();
  if (!launch.address.empty() && launch.size > 1)
    throw DistError(
        fmt::format("[dist] torchrun started {} processes, which NCCL connects if each has a GPU: ask for "
                    "world(device) of a GPU, or start CPUs by mpirun -n {}",
                    launch.size, launch.size));
  if (launch.launcher.empty() || !launch.address.empty() ||
      (launch.size == 1 && !mpi_unavailable_reason().empty()))
    return std::move(InProcessGroup::create(1)[0]);
  auto group = std::make_unique<MpiGroup>();
  if (group->size() != launch.size)
    throw DistError(
        fmt::format("[dist] {} started {} processes, but MPI finds {}: the launcher belongs to another MPI "
                    "than the one that ferrite was built with",
                    launch.launcher, launch.size, group->size()));
  return group;
}

std::unique_ptr<Group> world(Device device) {
  if (device.kind != DeviceKind::cuda) return world();
  const Launch launch = launch_from_environment();
  if (!launch.address.empty() && (launch.size > 1 || nccl_unavailable_reason().empty()))
    return std::make_unique<NcclGroup>(Rendezvous{launch.rank, launch.size, launch.address}, device.index);
  std::unique_ptr<Group> hosts = world();
  // All ranks decide together: one without NCCL would leave the others waiting.
  const Array flag = detail::host_array({{1}, DType::i32});
  *flag.data<std::int32_t>() = nccl_unavailable_reason().empty() ? 0 : 1;
  hosts->all_reduce(flag, flag, ReduceOp::max);
  if (*flag.data<std::int32_t>() != 0 || share_gpus(*hosts, device.index)) return hosts;
  return std::make_unique<NcclGroup>(std::move(hosts), device.index);
}

std::string host_reason(const Group& group, Device device) {
  if (group.takes(device)) return "";
  const std::string reason = nccl_unavailable_reason();
  return reason.empty() ? "ranks share a GPU, or one of them has no NCCL" : reason;
}

}  // namespace ferrite::dist
