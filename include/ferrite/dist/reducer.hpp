// Reducer: sums over the ranks in the background, one after the other.
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
  /// `overlap`: sums run on a thread of the reducer. Otherwise wait() makes them on the calling thread. The
  /// group outlives the reducer.
  Reducer(Group& group, bool overlap);
  /// Sums that have not begun are dropped. One that has begun ends when all ranks have come to it, or fails.
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// out = the sum of every rank's `in` (Group::all_reduce). Ranks start the same sums in the same order.
  /// The memory stays as it is until wait() has returned. Throws the error of an earlier sum, if one failed.
  void start(const Array& in, const Array& out);
  /// Returns when all are done. Throws the first error; what came after it was dropped.
  void wait();

 private:
  struct Sum {
    Array in, out;
  };
  void work();

  Group& group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sum> sums_;  // the first stays here until it is done
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;  // none without overlap
};

}  // namespace ferrite::dist
