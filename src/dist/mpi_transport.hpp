// What MpiGroup needs from MPI. The file that includes mpi.h is a module beside the library, loaded with the
// first group: linked, MPI would be needed by every program. A static library has it inside.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "ferrite/dist/group.hpp"

namespace ferrite::dist {

/// All processes of MPI_COMM_WORLD. What MPI reports as an error is thrown as a DistError.
class MpiTransport {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  /// Between two ranks and on one channel, messages arrive in the order in which they were sent.
  enum class Channel { call, data, pair_call, pair_data };
  struct Message {
    std::byte* data;
    std::size_t bytes;
    int peer;
    bool is_received;
    Channel channel;
  };

  virtual ~MpiTransport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// The peers whose messages were not through at the deadline. If there are any, MPI may still read and
  /// write the memory of the messages. The same holds if one of the next two gives false: not done in time.
  virtual std::vector<int> exchange(std::span<const Message> messages, Deadline deadline) = 0;
  virtual bool broadcast(std::byte* data, std::size_t bytes, int root, Deadline deadline) = 0;
  /// out = the reduction, in MPI's order. f32 and f64 have sum, i32 and i64 have sum, max and min.
  virtual bool all_reduce(const std::byte* in, std::byte* out, std::int64_t count, DType dtype, ReduceOp op,
                          Deadline deadline) = 0;
  /// The program ends by MPI_Abort when it exits: MPI_Finalize would wait for ever.
  virtual void abort_at_exit() = 0;
  /// The group is destroyed. If it is to end by MPI_Abort and MPI belongs to somebody else, who would
  /// finalise it, that happens now.
  virtual void close() = 0;
};

/// Initialises MPI if nobody has.
extern "C" FERRITE_API MpiTransport* ferrite_open_mpi();

/// The transport of the module; DistError says why there is none.
std::unique_ptr<MpiTransport> open_mpi();

}  // namespace ferrite::dist
