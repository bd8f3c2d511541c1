// InProcessGroup: ranks that are threads of one process, for tests and for several devices of one process.
#pragma once

#include <memory>
#include <vector>

#include "ferrite/dist/group.hpp"

namespace ferrite::dist {

/// Takes memory of the host. Sums are made in the order of the ranks (is_reproducible).
class FERRITE_API InProcessGroup final : public Group {
 public:
  /// One handle for each rank; give each to a thread of its own. If a handle is destroyed, calls of the other
  /// ranks throw a DistError that names its rank. ValueError unless size >= 1.
  static std::vector<std::unique_ptr<InProcessGroup>> create(int size);
  ~InProcessGroup() override;

  int rank() const override { return rank_; }
  int size() const override;
  std::string describe() const override;
  bool takes(Device device) const override { return device.kind == DeviceKind::cpu; }
  bool is_reproducible() const override { return true; }

 private:
  class Meeting;
  struct Visit;
  InProcessGroup(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}

  void run_all_reduce(const std::string& call, const Array& in, const Array& out, ReduceOp op) override;
  void run_reduce_scatter(const std::string& call, const Array& in, const Array& out, ReduceOp op) override;
  void run_all_gather(const std::string& call, const Array& in, const Array& out) override;
  void run_broadcast(const std::string& call, const Array& array, int root) override;
  void run_barrier(const std::string& call) override;
  void run_send(const Array& array, int to) override;
  void run_recv(const Array& array, int from) override;

  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace ferrite::dist
