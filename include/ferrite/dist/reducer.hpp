// Reducer: sums over the ranks in the background, one after the other: on a thread, or on the queue of a
// device.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "ferrite/dist/group.hpp"

namespace ferrite::dist {

/// Uses the handle of a rank from the first start() until wait() has returned: nobody else may use it then.
class FERRITE_API Reducer {
 public:
  /// `overlap`: sums run on a thread of the reducer, or beside what the device is given meanwhile if the
  /// group queues them there (Group::is_queued). Otherwise wait() makes them, on the calling thread. The
  /// group outlives the reducer.
  Reducer(Group& group, bool overlap) : group_(group), overlap_(overlap) {}
  /// Sums that have not begun are dropped. One that has begun ends when all ranks have come to it, or fails.
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Who gets a sum: all ranks (Group::all_reduce), or each its part (Group::reduce_scatter).
  enum class To : std::uint8_t { all, parts };
  /// out = the sum of every rank's `in`. Ranks start the same sums in the same order. The memory stays as it
  /// is until wait() has returned. Throws the error of an earlier sum, if one failed.
  void start(const Array& in, const Array& out, To to = To::all);
  /// Returns when all are done, or given to the device. Throws the first error; what came after it was
  /// dropped.
  void wait();

 private:
  struct Sum {
    Array in, out;
    To to;
  };
  void make(const Sum& sum);
  void work();

  Group& group_;
  const bool overlap_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sum> sums_;  // the first stays here until it is done
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;  // from the first sum on that it makes
};

}  // namespace ferrite::dist
