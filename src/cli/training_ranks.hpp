// TrainingRanks: the processes that a command was started as (mpirun, srun, torchrun), which train one model
// together.
#pragma once

#include <memory>
#include <string>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/dist/world.hpp"

namespace ferrite::cli {

class TrainingRanks {
 public:
  /// Throws as dist::launch_from_environment.
  TrainingRanks() : launch_(dist::launch_from_environment()) {}
  /// Before the group is used. Throws as dist::world.
  void connect(Device device) {
    if (size() == 1) return;
    group_ = dist::world(device);
    const std::string reason = dist::host_reason(*group_, device);
    through_ = !reason.empty()                   ? "gradients go through the host: " + reason
               : device.kind == DeviceKind::cuda ? "NCCL"
                                                 : "";
  }

  /// Of several ranks.
  dist::Group& group() { return *group_; }
  int rank() const { return launch_.rank; }
  int size() const { return launch_.size; }
  /// The one that reports.
  bool is_first() const { return rank() == 0; }
  /// Processes of one host take the GPUs that they see in turn, unless the name says which.
  std::string backend(const std::string& name) const {
    const int gpus = cuda_device_count();
    if (size() == 1 || gpus == 0 || name.find(':') != std::string::npos) return name;
    const std::string full = name == "auto" ? "cuda" : name;
    if (full.find("cuda") == std::string::npos) return name;
    return full + ":" + std::to_string(launch_.local_rank % gpus);
  }
  /// A seed for what ranks draw themselves. That of rank 0 is the one that was given.
  std::uint64_t seed(std::uint64_t given) const {
    return given + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(rank());
  }
  /// ", 4 ranks (Open MPI, NCCL)", or nothing.
  std::string describe() const {
    if (size() == 1) return "";
    return ", " + std::to_string(size()) + " ranks (" + launch_.launcher +
           (through_.empty() ? "" : ", " + through_) + ")";
  }

 private:
  dist::Launch launch_;
  std::unique_ptr<dist::Group> group_;
  std::string through_;
};

}  // namespace ferrite::cli
