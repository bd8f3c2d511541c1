// MpiGroup: ranks that are processes, started by mpirun or by srun with an MPI. MPI is loaded when the first
// group is made.
#pragma once

#include <memory>
#include <string>

#include "ferrite/dist/group.hpp"

namespace ferrite::dist {

/// reproducible: as ReduceOp says, with the same bits as InProcessGroup. mpi: all_reduce of i32 and i64, and
/// sums and means of f32 and f64, by MPI_Iallreduce, which adds in an order of its own; the rest as before.
enum class Reduction : std::uint8_t { reproducible, mpi };

/// Why there is no MpiGroup, in one sentence; empty if there is one.
FERRITE_API std::string mpi_unavailable_reason();

/// All processes of MPI_COMM_WORLD, each with the memory of its host. Initialises MPI
/// (MPI_THREAD_SERIALIZED) if nobody has, and then finalises it at the end of the program.
///
/// Before each call the ranks exchange what they called, which finds mismatches and ranks that do not arrive.
/// If the group has failed, or the others have not reached the end of theirs when this one is destroyed or
/// the program exits, the program is ended by MPI_Abort: MPI could only hang then.
class FERRITE_API MpiGroup final : public Group {
 public:
  /// All processes make one at the same time. DistError if ferrite was built without MPI, if MPI cannot be
  /// loaded, or if it was finalised already.
  explicit MpiGroup(Reduction reduction = Reduction::reproducible);
  /// Waits for the others to end their groups too, within the timeout.
  ~MpiGroup() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string describe() const override;
  bool takes(Device device) const override { return device.kind == DeviceKind::cpu; }
  /// With Reduction::mpi only a world of at most two: a sum of two numbers has one order.
  bool is_reproducible() const override { return reduction_ == Reduction::reproducible || size_ <= 2; }

 private:
  struct State;
  class Call;

  void run_all_reduce(const std::string& call, const Array& in, const Array& out, ReduceOp op) override;
  void run_reduce_scatter(const std::string& call, const Array& in, const Array& out, ReduceOp op) override;
  void run_all_gather(const std::string& call, const Array& in, const Array& out) override;
  void run_broadcast(const std::string& call, const Array& array, int root) override;
  void run_barrier(const std::string& call) override;
  void run_send(const Array& array, int to) override;
  void run_recv(const Array& array, int from) override;
  void reduce_small(Call& call, const Array& in, const Array& out, ReduceOp op);
  void reduce_slices(Call& call, const Array& in, const Array& out, ReduceOp op);
  void end();

  std::shared_ptr<State> state_;
  Reduction reduction_;
  int rank_ = 0, size_ = 1;
};

}  // namespace ferrite::dist
