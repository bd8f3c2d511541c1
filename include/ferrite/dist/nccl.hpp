// NcclGroup: ranks with a GPU each, whose collectives are NVIDIA's NCCL. NCCL is loaded when the first group
// is made.
#pragma once

#include <memory>
#include <string>

#include "ferrite/dist/group.hpp"

namespace ferrite::dist {

/// Why there is no NcclGroup, in one sentence; empty if there is one.
FERRITE_API std::string nccl_unavailable_reason();

/// Ranks that find each other by NCCL alone: rank 0 listens at `address`, "host:port".
struct Rendezvous {
  int rank = 0, size = 1;
  std::string address;
};

/// Takes memory of its GPU, and of the host. Calls on the GPU's memory are queued on its stream, with the
/// kernels, and can be recorded (Group::is_queued). NCCL adds in an order of its own, rounds f16 and bf16 at
/// every step, and may drop NaN in max and min.
///
/// NCCL can neither compare what ranks call nor say which one is missing. A call that does not end within the
/// timeout, or an error of NCCL, ends the group: what hangs on the GPU is aborted, and every later call
/// throws a DistError. Ranks of one group have different GPUs; NCCL refuses others.
class FERRITE_API NcclGroup final : public Group {
 public:
  /// The ranks of `hosts`, each with the GPU `gpu` of its process. What lies on the host goes through
  /// `hosts`, with all its checks. All ranks make one at the same time. DistError if there is no NCCL, or if
  /// the ranks cannot connect; DeviceError if there is no such GPU.
  NcclGroup(std::unique_ptr<Group> hosts, int gpu);
  /// Without another group: what lies on the host goes through the GPUs. DistError as above.
  NcclGroup(const Rendezvous& rendezvous, int gpu);
  ~NcclGroup() override;

  int rank() const override;
  int size() const override;
  std::string describe() const override;
  bool takes(Device device) const override;
  /// A world of at most two: a sum of two numbers has one order.
  bool is_reproducible() const override { return size() <= 2; }
  bool is_queued(Device device) const override { return device.kind == DeviceKind::cuda && takes(device); }
  void fork() override;
  void join() override;

 private:
  class State;

  void run_all_reduce(const std::string& call, const Array& in, const Array& out, ReduceOp op) override;
  void run_reduce_scatter(const std::string& call, const Array& in, const Array& out, ReduceOp op) override;
  void run_all_gather(const std::string& call, const Array& in, const Array& out) override;
  void run_broadcast(const std::string& call, const Array& array, int root) override;
  void run_barrier(const std::string& call) override;
  void run_send(const Array& array, int to) override;
  void run_recv(const Array& array, int from) override;

  std::unique_ptr<State> state_;
};

}  // namespace ferrite::dist
