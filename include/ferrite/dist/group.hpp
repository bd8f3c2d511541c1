// Group: several ranks that compute together, and the collectives between them. A rank is a process (MPI) or
// a thread (InProcessGroup) with its own handle. This header has the groups on arrays; dist/collectives.hpp
// has the same functions on tensors, dist/world.hpp the group that a program was started with.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/core/array.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::dist {

/// Ranks that do not work together: one called something else, did not arrive in time, or is gone. The
/// message names the ranks and what they called.
class FERRITE_API DistError : public Error {
 public:
  using Error::Error;
};

/// How the elements of all ranks become one. Sums are made in the order of the ranks: ((x0 + x1) + x2) + ...
/// f16 and bf16 are added in f32 and rounded once, at the end. Sums of integers wrap around. mean is the sum
/// divided by the number of ranks, for floats only. max and min give NaN if a rank has NaN, and of equal
/// values the one of the lowest rank.
enum class ReduceOp : std::uint8_t { sum, mean, max, min };
/// "sum", "mean", ...
FERRITE_API std::string_view to_string(ReduceOp op);

/// How long a rank waits for the others unless the group is told otherwise: FERRITE_DIST_TIMEOUT in seconds,
/// else ten minutes. ValueError if the variable is not a number above 0.
FERRITE_API std::chrono::milliseconds default_timeout();

/// The handle of one rank.
///
/// Every rank calls the same collectives in the same order, with arrays of the same shape and dtype. If a
/// rank calls something else, all of them throw a DistError that says who called what, and the group goes on.
/// If a rank does not arrive within the timeout, or is gone, the others throw a DistError that names it; the
/// group has then failed, and every later call throws the same.
///
/// Arrays are dense and row-major, in memory that the group takes; a ValueError or a DeviceError otherwise.
/// An output does not overlap an input,
/// except: all_reduce may write its input; what reduce_scatter writes may be part rank() of its input, and
/// what all_gather reads part rank() of its output. Empty arrays are allowed. What is wrong with the
/// arguments of one rank is thrown before anything is sent. One thread at a time uses a handle.
class FERRITE_API Group {
 public:
  Group() : timeout_(default_timeout()) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "MPI, rank 1 of 4"
  virtual std::string describe() const = 0;
  /// True if the group reads and writes memory of this device itself. The functions on tensors copy others
  /// to the host and back.
  virtual bool takes(Device device) const = 0;
  /// True if sums are made as ReduceOp says, so that all such groups give the same bits.
  virtual bool is_reproducible() const = 0;

  /// True if calls on memory of this device go to one of its queues: they return before they are done, and
  /// what the device is given afterwards waits for them, as for kernels. Such calls can be recorded.
  virtual bool is_queued([[maybe_unused]] Device device) const { return false; }
  /// Of queued calls: those that follow run beside what the device is given until join(), and after what it
  /// was given before fork(). What is given after join() waits for them.
  virtual void fork() {}
  virtual void join() {}

  std::chrono::milliseconds timeout() const { return timeout_; }
  /// For the next calls of this rank; 1e9 seconds at most. ValueError unless it is above 0.
  void set_timeout(std::chrono::milliseconds timeout);

  /// out = the reduction of every rank's `in`; the same shape on all ranks. bool has max and min only; i8,
  /// u16 and u32 have none (DTypeError), as in ops.
  void all_reduce(const Array& in, const Array& out, ReduceOp op = ReduceOp::sum);
  /// `in` is size() parts, one after the other along axis 0; out = the reduction of part rank(). ShapeError
  /// if the shapes do not say that.
  void reduce_scatter(const Array& in, const Array& out, ReduceOp op = ReduceOp::sum);
  /// out = every rank's `in` in the order of the ranks, along axis 0. Any dtype.
  void all_gather(const Array& in, const Array& out);
  /// Writes the array of rank `root` into those of all others. Any dtype.
  void broadcast(const Array& array, int root = 0);
  /// Returns when every rank has called it.
  void barrier();
  /// From this rank to the rank that calls recv with an array of the same shape and dtype. Both wait for each
  /// other: two ranks that send to each other first are a deadlock, which the timeout ends. Any dtype.
  void send(const Array& array, int to);
  void recv(const Array& array, int from);

 private:
  // Arguments are checked. `call` says what was called, in the words of error messages: it is equal on all
  // ranks if they do the same.
  virtual void run_all_reduce(const std::string& call, const Array& in, const Array& out, ReduceOp op) = 0;
  virtual void run_reduce_scatter(const std::string& call, const Array& in, const Array& out,
                                  ReduceOp op) = 0;
  virtual void run_all_gather(const std::string& call, const Array& in, const Array& out) = 0;
  virtual void run_broadcast(const std::string& call, const Array& array, int root) = 0;
  virtual void run_barrier(const std::string& call) = 0;
  virtual void run_send(const Array& array, int to) = 0;
  virtual void run_recv(const Array& array, int from) = 0;

  void check_array(std::string_view op, std::string_view name, const Array& array) const;
  void check_peer(std::string_view op, int peer) const;

  std::chrono::milliseconds timeout_;
};

}  // namespace ferrite::dist
